"""Count habits of language that make texts hard to read, and compare them with limits that only fall.

``python -m tests.docs.words`` fails if a count is above its limit in ``words.json``. ``--list PATTERN`` prints the occurrences
of a pattern, and ``--lower`` writes lower counts as the new limits. CONTRIBUTING.md has the words to use instead.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIMITS = Path(__file__).with_suffix(".json")

PATTERNS = {
    "what": r"\bwhat\b(?! if\b)",
    "that of": r"\b(?:that|those) of\b",
    "of which": r"\bof (?:which|whose)\b",
    "lies, stands": r"\b(?:lies?|stands?|hangs? on)\b",
    "behind, beside": r"\b(?:behind|beside|anew)\b",
    "is no": r"\b(?:is|are|was|were) (?:no|(?-i:none))\b",
    "as it is": r"\bas (?:it|they) (?:is|are|was|were)\b",
    "is to be": r"\b(?:is|are) to be\b",
    "leaves, is left": r"\b(?:leaves|(?:is|are|was|were) left)\b",
    "such": r"\bsuch\b(?! as\b)",
    "picture, data set, body": r"\b(?:pictures?|data sets?|bod(?:y|ies))\b",
    "an image a second": r"\b(?:images|samples|batches|files|times|bytes|calls?|one) an? (?:second|sample|image|batch|call|channel|core)\b",
    "words of this project": r"\b(?:interpreter's|Python's) lock\b|\b(?:conductor|obituary|LinkedChain|errands?|\w*normalis\w*)\b",
    "first word": r"\A(?:what|whether|who|where|which|how|when)\b",
}
PARTICIPLE = re.compile(
    r"_*(?:[a-z]+ed|made|found|given|taken|held|kept|drawn|begun|said|told|left|sent|known|seen|built|lent)_*"
)
HOUSE_WORD = re.compile(
    r"(?:_|\b)(?:places?|pictures?|room|arena|usual|alone|together|behind|beside|anew|what|said|told|taken|kept)(?:_|\b)",
    re.IGNORECASE,
)
PATCHES = re.compile(r"\b(?:setattr|patch|patch\.object)$")
LAST_NAMES = ("setattr", "patch", "object")  # of these functions
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Text(NamedTuple):
    """A docstring, a message, or a page without its code."""

    location: str
    words: str


def parse(folder: Path) -> Iterator[tuple[str, ast.AST]]:
    """Yield the paths of all modules in a folder, and their nodes that aren't expressions."""
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
        for node in nodes:  # most nodes are expressions
            yield name, node
            nodes += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


def read_docstring(path: str, node: ast.AST) -> Iterator[Text]:
    """Yield the docstring of a definition."""
    if isinstance(node, DEFINITIONS) and (text := ast.get_docstring(node)):
        yield Text(f"{path}:{node.body[0].lineno}", text)


def read_message(path: str, node: ast.AST) -> Iterator[Text]:
    """Yield the strings of at least three words in a statement, except for docstrings."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    own = (child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.keyword)))
    for each in (inner for child in own for inner in ast.walk(child)):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and len(each.value.split()) >= 3:
            yield Text(f"{path}:{each.lineno}", each.value)


def name_of(function: ast.AST) -> str:
    """Return the last part of a function's name; "" if it has none."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


def read_pages() -> Iterator[Text]:
    """Yield the pages, without blocks of code."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if "operators" not in path.parts:  # written from the docstrings
            text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
            yield Text(path.relative_to(ROOT).as_posix(), text)


def read_texts() -> dict[str, list[Text]]:
    """Return all texts, by kind."""
    code, tests = read_code(parse(ROOT / "torchdali")), list(parse(ROOT / "tests"))
    texts = {"docstrings": code["docstrings"], "messages": code["messages"], "pages": list(read_pages()), **code}
    texts["docstrings of tests"] = [text for path, node in tests for text in read_docstring(path, node)]
    texts["house words in names of tests"] = [text for path, node in tests for text in read_house_word(path, node)]
    return {**texts, "private names in tests": read_private()}


def read_code(nodes: Iterable[tuple[str, ast.AST]]) -> dict[str, list[Text]]:
    """Return docstrings, messages, participles that name functions, house words in names, and names of several classes."""
    texts: dict[str, list[Text]] = {"docstrings": [], "messages": [], "participle functions": [], "house words in names": []}
    classes: dict[str, set[str]] = {}
    for path, node in nodes:
        texts["docstrings"] += read_docstring(path, node)
        texts["messages"] += read_message(path, node)
        texts["participle functions"] += read_participle(path, node)
        texts["house words in names"] += read_house_word(path, node)
        if isinstance(node, ast.ClassDef):
            classes.setdefault(node.name.lstrip("_"), set()).add(path)
    shared = [Text(", ".join(sorted(paths)), name) for name, paths in classes.items() if len(paths) > 1]
    return {**texts, "shared class names": shared}


def read_participle(path: str, node: ast.AST) -> Iterator[Text]:
    """Yield the name of a function, if it is a participle; properties may have one."""
    if (
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and PARTICIPLE.fullmatch(node.name)
        and not any("property" in name_of(each) for each in node.decorator_list)
    ):  # fmt: skip
        yield Text(f"{path}:{node.lineno}", node.name)


def read_house_word(path: str, node: ast.AST) -> Iterator[Text]:
    """Yield the names of a function, class, parameter, attribute or annotated variable that contain a house word."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    names = [getattr(node, "name", "") if isinstance(node, DEFINITIONS) else getattr(node, "arg", "")]
    names += [name_of(target) for target in targets if isinstance(target, ast.Attribute) or isinstance(node, ast.AnnAssign)]
    for name in filter(HOUSE_WORD.search, (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name) for name in names if name)):
        yield Text(f"{path}:{getattr(node, 'lineno', 1)}", name)


def read_private() -> list[Text]:
    """Return the private names that tests import from the package, or replace anywhere."""
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torchdali"):
                names = [f"{node.module}.{each.name}" for each in node.names]
            elif isinstance(node, ast.Call) and name_of(node.func) in LAST_NAMES and PATCHES.search(ast.unparse(node.func)):
                names = [each.value for each in node.args[:2] if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            found += [Text(f"{file}:{node.lineno}", name) for name in names if re.search(r"(?:^|\.)_(?!_)", name)]
    return found


def find(kind: str, texts: list[Text]) -> dict[str, list[str]]:
    """Return the occurrences of each pattern in texts of a kind, as ``kind: pattern``."""
    if "functions" in kind or "names" in kind:
        return {kind: [f"{text.location}: {text.words}" for text in texts]}
    return {f"{kind}: {name}": list(find_pattern(pattern, texts)) for name, pattern in PATTERNS.items()}


def find_pattern(pattern: str, texts: list[Text]) -> Iterator[str]:
    """Yield the occurrences of a pattern, and the words around them."""
    for text in texts:
        for match in re.finditer(pattern, text.words, re.IGNORECASE):
            around = text.words[max(0, match.start() - 40) : match.end() + 40]
            yield f"{text.location}: ...{' '.join(around.split())}..."


def count_all() -> dict[str, list[str]]:
    """Return the occurrences of all patterns."""
    return {name: locations for kind, texts in read_texts().items() for name, locations in find(kind, texts).items()}


def read_limits() -> dict[str, int]:
    """Return the largest counts that are allowed."""
    limits: dict[str, int] = json.loads(LIMITS.read_text(encoding="utf-8"))
    return limits


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="PATTERN", help="print the places of a pattern, like 'pages: what'")
    parser.add_argument("--lower", action="store_true", help="write lower counts as the new limits")
    options = parser.parse_args()
    found, limits = count_all(), read_limits()
    for location in found.get(options.list, ()):
        print(location)
    if options.lower:
        lower = {name: min(len(locations), limits.get(name, len(locations))) for name, locations in found.items()}
        LIMITS.write_text(json.dumps(lower, indent=1) + "\n", encoding="utf-8")
    above = {name: len(locations) for name, locations in found.items() if len(locations) > limits.get(name, 0)}
    for name, count in above.items():
        print(f"{name}: {count}, at most {limits.get(name, 0)} are allowed; see --list {name!r}")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
