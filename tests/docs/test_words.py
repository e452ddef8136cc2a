"""The texts of the package keep the limits of `tests.docs.words`."""

from __future__ import annotations

import ast

import pytest

from tests.docs import words


def test_no_habit_of_language_grows() -> None:
    found, limits = words.count_all(), words.read_limits()
    assert limits.keys() == found.keys(), "run: python -m tests.docs.words --lower"
    assert {name: locations for name, locations in found.items() if len(locations) > limits[name]} == {}


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ('"""What it does."""', "docstrings", {"what", "first word"}),
        ('def f():\n    """Return the values that of such a file are left."""', "docstrings", {"that of", "such", "leaves, is left"}),
        ('class A:\n    """Lies behind; 3 images a second, as it is."""', "docstrings", {"lies, stands", "behind, beside", "an image a second", "as it is"}),
        ('raise ValueError(f"{x} is no picture")', "messages", {"is no", "picture, data set, body"}),
        ('warnings.warn("the value of which is to be")', "messages", {"of which", "is to be"}),
        ('hint = "what is left"', "messages", {"what", "leaves, is left", "first word"}),
        ('f(key="what is")', "messages", set()),
        ('"""Return a value, whatever that is; such as 3."""', "docstrings", set()),
    ],
)  # fmt: skip
def test_patterns(code: str, kind: str, expected: set[str]) -> None:
    read = {"docstrings": words.read_docstring, "messages": words.read_message}[kind]
    nodes = [node for node in ast.walk(ast.parse(code)) if not isinstance(node, (ast.expr, ast.keyword))]
    texts = [text for node in nodes for text in read("a.py", node)]
    assert {name.partition(": ")[2] for name, locations in words.find(kind, texts).items() if locations} == expected


def test_names() -> None:
    code = "def _opened(): ...\ndef open_all(): ...\nclass A:\n    @property\n    def closed(self): ...\nclass _A: ...\nclass B: ..."
    nodes = [(path, node) for path in ("a.py", "b.py") for node in ast.walk(ast.parse(code if path == "a.py" else "class A: ..."))]
    found = words.read_code(nodes)
    assert [text.words for text in found["participle functions"]] == ["_opened"]
    assert [text.words for text in found["shared class names"]] == ["A"]


def test_house_words() -> None:
    code = "class PlaceTable:\n    def run_alone(self, room, replaced):\n        self.kept_rows = self.backroom = room"
    nodes = [node for node in ast.walk(ast.parse(code)) if not isinstance(node, ast.expr)]
    found = [text.words for node in nodes for text in words.read_house_word("a.py", node)]
    assert sorted(found) == ["Place_Table", "kept_rows", "room", "run_alone"]
