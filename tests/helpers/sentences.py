"""The sentences of a page of Markdown: its paragraphs and list items, without code, tables and headings."""

from __future__ import annotations

import re

__all__ = ["mean_length", "sentences"]

_LEFT_OUT = re.compile(
    r"^```.*?^```$|<!--.*?-->|^(?:\||#|!\[).*?$",  # code, remarks, tables, headings, pictures
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)
_PARTS = re.compile(r"\n\s*\n(?:\s*(?:[-*]|\d+\.)\s+)?|\n\s*(?:[-*]|\d+\.)\s+")
_END = re.compile(r"(?P<end>[.!?][*\")]*) ")


def sentences(text: str) -> list[str]:
    """Find the sentences of a page; a list item without a full stop is one, too. Code within a line is one word."""
    plain = _CODE.sub("code", _LINK.sub(r"\1", _LEFT_OUT.sub("\n\n", text)))
    parts = (" ".join(part.split()) for part in _PARTS.split("\n" + plain))
    return [sentence for part in parts for sentence in _END.sub(r"\g<end>\n", part).split("\n") if re.search(r"\w", sentence)]


def mean_length(text: str) -> float:
    """Return the mean number of words of the sentences of a page."""
    found = sentences(text)
    return sum(len(sentence.split()) for sentence in found) / max(1, len(found))
