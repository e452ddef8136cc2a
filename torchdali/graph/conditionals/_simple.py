"""Replace code whose meaning depends on the function that contains it, so that it can be moved into inner functions."""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["mangle", "simplify"]


def simplify(definition: ast.FunctionDef) -> list[str]:
    """Replace code that would have another meaning in an inner function.

    Annotations of variables are removed, because Python ignores them in functions. ``super()`` gets explicit arguments.

    Returns:
        Variables that have only an annotation, and no value.
    """
    first = [*definition.args.posonlyargs, *definition.args.args][:1]
    simplifier = _Simple(first[0].arg if first else "")
    definition.body = [simplifier.visit(statement) for statement in definition.body]
    return simplifier.unset


class _Simple(ast.NodeTransformer):
    def __init__(self, first: str) -> None:
        self._first = first
        self.unset: list[str] = []

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        if node.value is not None:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        if isinstance(node.target, ast.Name):
            self.unset.append(node.target.id)
        return ast.copy_location(ast.Pass(), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first:
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._first, ast.Load())]
        return node

    def inner(self, node: Any) -> Any:
        """Keep nested definitions unchanged."""
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = inner


def mangle(name: str, class_name: str) -> str:
    """Return a name as Python changes it inside of a class: in a class ``A``, ``__x`` becomes ``_A__x``."""
    bare = class_name.lstrip("_")
    return f"_{bare}{name}" if bare and name.startswith("__") and not name.endswith("__") else name
