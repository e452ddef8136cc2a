"""The order of the modules: each imports only from earlier ones, on any line.

``ORDER`` is the table of layers in ``docs/architecture.md``, read from left to right and from top
to bottom. A package counts as one unit; imports between its own files are free.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import torchdali.ops  # noqa: F401  fills the registry
from torchdali.declaration.registry import registry

PACKAGE = Path(__file__).resolve().parents[1] / "torchdali"

LAYERS = (
    ("cores", "environment", "installation", "submodules", "errors", "forks", "threads", "pickling", "tfrecord"),
    ("pictures", "tensors", "rng", "kernels", "codecs", "formats"),
    ("reading", "declaration", "graph", "data_node", "types", "calls"),
    ("ops", "execute"),
    ("fn", "external_source", "math", "pipeline", "auto_aug", "containers"),
    ("tuning", "dataloader", "plugin", "_demo", "_commands", "cli", "__main__"),
    ("dali", "backend", "plugin_manager", "experimental", "dynamic", "stubs"),
)
ORDER = tuple(unit for layer in LAYERS for unit in layer)

# Imports that the order would allow, but that are forbidden, of a unit or of a module in one.
FORBIDDEN = {
    ("kernels", "tensors"): "kernels are maths on plain tensors",
    ("codecs", "tensors"): "codecs turn bytes into plain tensors",
    ("formats", "tensors"): "formats find records in bytes",
    ("graph", "ops"): "operators and graph meet in `declaration.registry`",
    ("execute", "ops"): "operators and executor meet in `declaration.registry`",
    ("execute", "graph.conditionals"): "an executor runs a plan",
    **{
        (unit, f"graph.{module}"): "calls and operators know nodes, not what becomes of them"
        for unit in ("calls", "ops")
        for module in ("conditionals", "plan", "rewrite", "serialization")
    },
}

# All modules that the delivering layer may import: the public ones.
PUBLIC = frozenset(
    ("", "cores", "environment", "installation", "submodules", "errors", "forks", "threads", "rng", "types", "tensors", "fn", "ops", "math", "pipeline", "auto_aug", "plugin", "containers", "pictures")
)
DELIVERING = frozenset(LAYERS[5])

# The last layer supports programs written for DALI. Only these modules import it.
DOORS = {
    ("pipeline._factory", "dali.debug"): "pipeline_def(debug=True)",
    ("pipeline._pipeline", "dali.old_names"): "published programs use inner names of DALI's Pipeline",
    ("plugin.base_iterator", "dali.old_names"): "published programs use inner names of DALI's iterators",
    ("plugin.pytorch.experimental.proxy", "dali.proxy"): "the path that DALI's users know",
}
LIGHT = {("dataloader", "kernels.native"): "worker processes ask for the library without loading the operators"}

# Modules that import others of the package in functions, and the reason, in the order of the layers.
LATE = {
    "cli": "--help answers before torch is loaded",
    "codecs._image_formats": "TIFF loads Pillow, which other images do not need",
    "codecs._image_headers": "TIFF loads Pillow, which other images do not need",
    "formats.remote": "aiohttp is loaded for the first URL of a web server",
    "dataloader._lazy_opening": "Pillow is loaded where samples are made",
    "dataloader._loader": "Pillow is loaded when a loader is shown",
    "dataloader._plans": "torchvision and the operators are loaded for data sets of torchvision alone",
    "pipeline._factory": "debug mode belongs to the corner of `dali`, and is loaded where a pipeline asks for it",
    "kernels.device.library": "Triton is loaded where a kernel is launched",
    "plugin.pytorch._folders": "torchvision is loaded if augment= is one of its transforms",
    "pipeline._pipeline": "Pillow is loaded when a pipeline is shown",
    "plugin.pytorch.loader": "Pillow is loaded when a loader is shown",
    "stubs.__main__": "placeholders come first, where PyTorch is not installed",
    "tensors._batch": "Pillow is loaded when a batch is shown",
}


DEVICE_DECODER = PACKAGE / "execute" / "hardware_decoding.py"
ENGINE = [file for file in sorted((PACKAGE / "execute").rglob("*.py")) if file != DEVICE_DECODER]


@dataclass(frozen=True)
class Import:
    """One import of a module of the package, seen from the package's root."""

    importer: str
    target: str
    line: int
    late: bool  # in a function

    @property
    def source(self) -> str:
        return self.importer.split(".")[0]

    @property
    def unit(self) -> str:
        return self.target.split(".")[0]


class _Imports(ast.NodeVisitor):
    """Collects a module's imports from the package, absolute and relative, at any depth."""

    def __init__(self, path: Path, package: Path, names: frozenset[str]) -> None:
        self.package = package
        parts = path.relative_to(package).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        self.module = ".".join(parts[:-1] if is_package else parts)
        self.parents = parts[:-1]
        self.names = names
        self.found: list[Import] = []
        self.depth = 0

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.expr):  # an expression imports nothing
            super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._absolute(node)
        for alias in node.names:
            full = f"{base}.{alias.name}"
            named = base == self.package.name and alias.name in self.names
            self._add(full if self._is_module(full) and not named else base, node.lineno)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        kept = self.parents[: len(self.parents) - node.level + 1]
        return ".".join((self.package.name, *kept, *filter(None, [node.module])))

    def _is_module(self, dotted: str) -> bool:
        path = self.package.parent.joinpath(*dotted.split("."))
        return path.with_suffix(".py").exists() or (path / "__init__.py").exists()

    def _add(self, dotted: str, line: int) -> None:
        root, _, target = dotted.partition(".")
        if root == self.package.name:
            self.found.append(Import(self.module, target, line, self.depth > 0))


def _public_names(package: Path) -> frozenset[str]:
    """Return ``__all__`` of the package itself; a function in it may have the name of a module."""
    for statement in ast.parse((package / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(statement.value))
    return frozenset()


@functools.cache
def imports(package: Path) -> tuple[Import, ...]:
    """Return all imports between the modules of a package folder."""
    return tuple(_imports(package))


def _imports(package: Path) -> Iterator[Import]:
    names = _public_names(package)
    for path in sorted(package.rglob("*.py")):
        visitor = _Imports(path, package, names)
        visitor.visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
        yield from visitor.found


def _is_of(module: str, unit: str) -> bool:
    """Return True for a module, and for its submodules."""
    return f"{module}.".startswith(f"{unit}.")


def objection(found: Import) -> str | None:
    """Return the reason why an import breaks the layers, or None."""
    source, unit = found.source, found.unit
    if found.late and found.importer not in LATE:
        return "imports stand at the top of a module"
    if source in ("", unit) or any(found.importer == door and _is_of(found.target, room) for door, room in DOORS):
        return None
    if unknown := {source, unit} - {"", *ORDER}:
        return f"{unknown.pop()} has no place in ORDER"
    if source in DELIVERING and unit not in DELIVERING:
        is_light = (source, found.target) in LIGHT
        return None if is_light or unit in PUBLIC else f"{source} may use the public API only"
    if unit == "":
        return "the package's own __init__ stands above every module"
    for (importer, target), reason in FORBIDDEN.items():
        if _is_of(found.importer, importer) and _is_of(found.target, target):
            return reason
    if ORDER.index(unit) > ORDER.index(source):
        return f"{unit} stands above {source}"
    return None


def violations(package: Path) -> list[str]:
    """Return each import that breaks the layers as ``module:line imports target: reason``."""
    return [
        f"{found.importer}:{found.line} imports {found.target or package.name}: {reason}"
        for found in imports(package)
        if (reason := objection(found))
    ]


def circles(package: Path) -> list[str]:
    """Return the cycles of files that import each other, at the top of a file or in functions, as ``a, b``.

    A file that imports a module from its own package only depends on that module.
    """
    arrows: dict[str, set[str]] = {}
    for found in imports(package):
        arrows.setdefault(found.importer, set()).add(found.target)
        arrows.setdefault(found.target, set())
    return _circles(arrows)


def _circles(arrows: dict[str, set[str]]) -> list[str]:
    """Return sets of files of which each reaches all others (Warshall)."""
    reached = {name: set(targets) for name, targets in arrows.items()}
    for through in arrows:
        for targets in reached.values():
            if through in targets:
                targets |= reached[through]
    groups = {frozenset(o for o in reached[name] if name in reached[o]) for name in arrows if name in reached[name]}
    return sorted(", ".join(sorted(group)) for group in groups)


def units(package: Path) -> set[str]:
    """Return the modules and packages directly in a package folder."""
    files = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in package.glob("*/__init__.py")}


def test_every_module_obeys_its_layer() -> None:
    assert violations(PACKAGE) == []


def test_every_import_of_the_dali_layer_is_used() -> None:
    used = {(found.importer, room) for found in imports(PACKAGE) for _, room in DOORS if _is_of(found.target, room)}
    assert set(DOORS) <= used


def test_no_files_import_each_other() -> None:
    assert circles(PACKAGE) == []


def test_no_sources_of_the_library_call_each_other() -> None:
    """Each exported C function is called only in its own file, and in files that its file does not call."""
    sources = {path.stem: path.read_text(encoding="utf-8") for path in (PACKAGE.parent / "native" / "src").glob("*.c")}
    homes = {
        name: stem for stem, text in sources.items() for name in re.findall(r"^[a-z].*?\b(tdn_\w+)\([^;]*$", text, re.MULTILINE)
    }
    assert homes["tdn_level"] == "level" and homes["tdn_resize"] == "pillow"
    called = {stem: {homes[name] for name in re.findall(r"\btdn_\w+", text) if name in homes} for stem, text in sources.items()}
    assert _circles({stem: targets - {stem} for stem, targets in called.items()}) == []


def test_late_imports_have_a_reason() -> None:
    assert {found.importer for found in imports(PACKAGE) if found.late} == set(LATE)


def test_every_module_has_a_layer() -> None:
    assert units(PACKAGE) - set(ORDER) == set()


def test_the_table_of_the_page_has_the_layers() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d [^|]*\|([^|]*)\|", page, re.MULTILINE)
    assert [tuple(re.findall(r"`(\w+)`", row)) for row in rows] == list(LAYERS)


def _fake(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "torchdali"
    names = {
        "__init__.py": "",
        "gadgets.py": "",
        **dict.fromkeys((f"{unit}.py" for unit in ORDER), ""),
    }
    for name, text in {**names, **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/__init__.py"):
            path.parent.with_suffix(".py").unlink(missing_ok=True)
        path.write_text(text)
    return package


BROKEN = [
    ("a layer above", "tensors.py", "from .graph import DataNode", "tensors:1 imports graph"),
    ("absolute import", "errors.py", "import torchdali.types", "errors:1 imports types"),
    ("from the package", "rng.py", "from torchdali import pipeline", "rng:1 imports pipeline"),
    ("relative package", "rng.py", "from . import fn", "rng:1 imports fn"),
    ("later in the layer", "declaration.py", "from .graph import Node", "declaration:1 imports graph"),
    ("batches in kernels", "kernels/resample.py", "from ..tensors import TensorList", "plain tens"),
    ("nodes in kernels", "kernels/warp.py", "from ..graph import Node", "kernels.warp:1 imports"),
    ("batches in codecs", "codecs/wav.py", "from torchdali.tensors import TensorList", "plain"),
    ("plan in ops", "ops/_resize.py", "from ..graph.plan import Step", "ops._resize:1 imports graph.plan"),
    ("rewriting in calls", "calls/dispatch.py", "from torchdali.graph.rewrite import fuse", "not what becomes of them"),
    ("ops in graph", "graph/plan.py", "from ..ops import resize", "meet in `declaration.registry`"),
    ("ops in executor", "execute/pool.py", "from torchdali.ops import resize", "meet in"),
    ("inside a function", "graph.py", "def f():\n    from . import rng", "graph:2 imports rng"),
    ("in a method", "calls.py", "class A:\n    def f(self):\n        from . import rng", "calls:3"),
    ("type checking", "rng.py", "if TYPE_CHECKING:\n    from .graph import Node", "rng:2"),
    ("upwards", "graph.py", "from .calls import call", "graph:1 imports calls"),
    ("up among the last", "dataloader.py", "from .plugin import f", "plugin stands above dataloader"),
    ("internals in plugin", "plugin/pytorch/it.py", "from ...graph import Graph", "public API"),
    ("internals in cli", "cli.py", "def f():\n    from torchdali.execute import x", "public API"),
    ("a module, no name", "cli.py", "from torchdali import declaration", "public API"),
    ("codecs in cli", "cli.py", "from torchdali.codecs import image", "public API"),
    ("no layer", "types.py", "from .gadgets import f", "gadgets has no place"),
    ("corner in pipelines", "pipeline/_run.py", "from torchdali.dali import backend", "dali stands above pipeline"),
    ("corner in plugin", "plugin/it.py", "from torchdali import experimental", "public API"),
    ("root from below", "ops/_x.py", "from torchdali import Tensor", "__init__ stands above"),
]


@pytest.mark.parametrize(
    ("file", "text", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_finds_broken_layers(tmp_path: Path, file: str, text: str, message: str) -> None:
    folder = f"{file.split('/')[0]}/__init__.py"
    package = _fake(tmp_path, {folder: "", file: text} if "/" in file else {file: text})
    found = violations(package)
    assert len(found) == 1
    assert message in found[0]


def test_accepts_valid_layers(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from .pipeline import f\nfrom . import execute\n__all__ = ['operator']",
        "kernels/__init__.py": "from . import warp",
        "kernels/warp.py": "import torch\nfrom ..errors import Error\nfrom .resample import f",
        "kernels/resample.py": "import os, json",
        "codecs/__init__.py": "from ..kernels import warp",
        "graph.py": "if TYPE_CHECKING:\n    from .declaration import Operator",
        "ops/__init__.py": "from .. import types\nfrom ..calls import operator",
        "execute/__init__.py": "from ..graph.plan import Plan\nfrom torchdali import errors",
        "plugin/__init__.py": "from torchdali import operator, types\nimport torchdali.fn",
        "cli.py": "def main():\n    from torchdali.plugin.pytorch import Iterator",
    }
    assert violations(_fake(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a": "from .b import f", "b": "from .c import f", "c": ""}, []),
        ({"a": "from .b import f", "b": "from .a import f"}, ["graph.a, graph.b"]),
        ({"a": "from .b import f", "b": "from .c import f", "c": "import torchdali.graph.a"}, ["graph.a, graph.b, graph.c"]),
        ({"a": "from .b import f", "b": "def f():\n    from torchdali.graph import a"}, ["graph.a, graph.b"]),
        ({"a": "from .b import f", "b": "if TYPE_CHECKING:\n    from .a import A"}, ["graph.a, graph.b"]),
        ({"a": "from .b import f", "b": "from torchdali import graph", "__init__": "from .a import f"}, ["graph, graph.a, graph.b"]),
    ],
    ids=["a row", "two", "three", "in a function", "for types", "by the package"],
)
def test_finds_import_cycles(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    package = _fake(tmp_path, {"graph/__init__.py": "", **{f"graph/{name}.py": text for name, text in files.items()}})
    assert circles(package) == expected


def test_new_modules_need_a_layer(tmp_path: Path) -> None:
    package = _fake(tmp_path, {"widgets/__init__.py": ""})
    assert units(package) - set(ORDER) == {"gadgets", "widgets"}


@pytest.mark.parametrize("file", ENGINE, ids=lambda file: str(file.relative_to(PACKAGE / "execute")))
def test_the_engine_uses_three_methods_of_the_device_decoder(file: Path) -> None:
    """The engine uses `open_share`, `submit` and `collect`, and creates and closes the decoder, but uses no internals."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {each.name for node in froms if node.module == "torchdali.execute.hardware_decoding" for each in node.names}
    assert names <= {"HardwareDecoding"} and "torchdali.codecs.engines" not in {node.module for node in froms}
    used = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)]
    methods = {node.attr for node in used if isinstance(node.value, ast.Attribute) and node.value.attr == "_decoder"}
    assert methods <= {"open_share", "submit", "collect", "close"} and bool(methods) == bool(names)
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    sharing = {name for name, operator in registry.items() if operator.has("shared")}
    assert sharing and not words & sharing
