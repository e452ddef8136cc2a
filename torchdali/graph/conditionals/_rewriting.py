"""Rewrite the syntax tree of a function: branches of an ``if`` become inner functions, so that both can be called."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchdali.graph.conditionals._simple import mangle, simplify

__all__ = ["RUNTIME", "rewrite"]

RUNTIME = "__torchdali_conditionals__"
"""Name of the variable that contains the module with the functions that rewritten code calls, such as `if_else`."""


_VALUES = f"{RUNTIME}values"  # must differ from the user's names in the same function


def rewrite(definition: ast.FunctionDef, class_name: str = "", unset: frozenset[str] = frozenset()) -> None:
    """Rewrite a function in place. `unset` contains variables of outer functions that may be undefined."""
    _Rewriter(class_name, unset).rewrite_function(definition)


class _Tail(ast.Return):
    """A ``return`` statement that calls a generated function, which contains the remaining statements of a block.

    Attributes:
        rest: The remaining statements before they were rewritten.
    """

    def __init__(self, function: ast.FunctionDef, rest: Sequence[ast.stmt]) -> None:
        super().__init__(ast.Call(ast.Name(function.name, ast.Load()), [], []))
        self.rest = rest

    def __deepcopy__(self, memory: Any) -> _Tail:
        return self  # a tail isn't rewritten, so it needn't be copied


class _Rewriter(ast.NodeTransformer):
    """Rewrites the body of one function."""

    def __init__(self, class_name: str, unset: frozenset[str] = frozenset()) -> None:
        self._serial = 0
        self._unset = unset  # variables that may be undefined, including variables of outer functions
        self._name, self._class_name = "", class_name
        self._globals: set[str] = set()
        self._inside = ""  # the kind of statement (loop, `with` or `try`) around the current statement
        self._in_expression = False  # True in a lambda or comprehension, which has its own variables
        self._prelude: list[ast.stmt] = []  # generated functions that must be defined at the function's start

    def rewrite_function(self, definition: ast.FunctionDef) -> None:
        """Rewrite a function in place. At its start, all variables that are set in branches become `Undefined`."""
        self._name = definition.name
        unset = simplify(definition)
        parameters = {a.arg for a in ast.walk(definition.args) if isinstance(a, ast.arg)}
        declared = set(_find_declared_names(definition.body, ast.Global, ast.Nonlocal))
        self._globals = set(_find_declared_names(definition.body, ast.Global))
        branch_names = {
            name
            for node in _walk(definition.body)
            if isinstance(node, ast.If) and not _find_obstacle([node])
            for name in _find_assigned_names([node])
        } | set(unset)
        branch_names |= {name for node in _walk(definition.body) for name in _find_skippable_names(node)}
        if any(isinstance(n, ast.If) and not _find_obstacle([n]) and _returns([n]) for n in _walk(definition.body)):
            # The statements after this `if` move into its branches.
            branch_names |= set(_find_assigned_names(definition.body))
        unset_here = branch_names - parameters - declared
        self._unset = self._unset - parameters - set(_find_assigned_names(definition.body)) | unset_here
        definition.body = self.rewrite_block(definition.body)
        starts = [_assign(name, _call("make_undefined", ast.Constant(name))) for name in sorted(unset_here)]
        after_docstring = 1 if ast.get_docstring(definition) is not None else 0
        definition.body[after_docstring:after_docstring] = [*starts, *self._prelude]

    def rewrite_block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements. If an ``if`` contains a return, its branches get the statements after the ``if``."""
        result: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            if isinstance(statement, ast.If) and _returns([statement]):
                obstacle = self.find_obstacle(statements[i:])
                if not obstacle:
                    return [*result, *self.rewrite_return(statement, statements[i + 1 :])]
                replacement = self.guard(statement, obstacle)
            else:
                replacement = self.visit(statement)
            result += replacement if isinstance(replacement, list) else [replacement]
        return result

    def rewrite_return(self, node: ast.If, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite an ``if`` that contains a return as ``return if_return(test, body, orelse)``."""
        remainder: list[ast.FunctionDef] = []
        if rest and not isinstance(rest[0], _Tail) and not any(map(_always_returns, (node.body, node.orelse))):
            remainder = [self.define_branch(self.rewrite_block(_copy_statements(rest)), _find_assigned_names(rest))]
            rest = [_set_line(_Tail(remainder[0], rest), node)]
        full_branches = [
            list(branch) if _always_returns(branch) else [*branch, *rest] for branch in (node.body, node.orelse)
        ]
        targets = _find_targets([*full_branches[0], *full_branches[1]])
        functions = [
            self.define_branch(self.rewrite_block(_copy_statements(branch)), _find_assigned_names(branch))
            for branch in full_branches
        ]
        functions += self.define_accessors(_find_assigned_names([*full_branches[0], *full_branches[1]]), targets)
        call = self.build_call("if_return", node, functions, targets)
        return [*remainder, *functions, _set_line(ast.Return(call), node)]

    def build_call(
        self,
        word: str,
        node: ast.If,
        functions: Sequence[ast.FunctionDef],
        targets: Sequence[_AssignmentTarget],
    ) -> ast.Call:
        """Build the call of `if_else` or `if_return`; see these functions for the arguments of the call."""
        names = [*_nonlocal_names(functions[-1]), *(target.text for target in targets)]
        return _call(
            word, self.visit(node.test), *[ast.Name(f.name, ast.Load()) for f in functions],
            ast.Tuple([ast.Constant(name) for name in names], ast.Load()),
        )  # fmt: skip

    def find_obstacle(self, statements: Sequence[ast.stmt]) -> str:
        """Return the construct that prevents moving the statements into a function; "" if they can be moved.

        The result is an argument for `python_only`, for example "break".
        """
        if self._inside and _returns(statements[:1]):
            return "return"
        if self._globals.intersection(_find_assigned_names(statements)):
            return "global"
        return _find_obstacle(statements)

    def guard(self, node: Any, construct: str) -> Any:
        """Leave a construct unchanged, but add code that raises an error if the construct's condition is a node.

        An ``if`` inside the construct can't return from a branch.
        """
        self.rewrite_inside(node, "if")
        words = ast.Constant(construct), ast.Constant(self._inside)
        node.test = ast.copy_location(_call("python_only", node.test, *words), node.test)
        return node

    def rewrite_inside(self, node: Any, word: str) -> Any:
        """Rewrite a compound statement. An ``if`` inside the statement can't return from a branch."""
        outer, self._inside = self._inside, self._inside or word
        self.generic_visit(node)
        self._inside = outer
        return node

    def visit_If(self, node: ast.If) -> Any:
        obstacle = self.find_obstacle([node])
        if obstacle:
            return self.guard(node, obstacle)
        names, targets = _find_assigned_names([node]), _find_targets([node])
        body = self.define_branch(self.rewrite_block(node.body), names)
        orelse = self.define_branch(self.rewrite_block(node.orelse), names)
        functions = [body, orelse, *self.define_accessors(names, targets)]
        replacement = [*functions, ast.Expr(self.build_call("if_else", node, functions, targets))]
        return [_set_line(statement, node) for statement in replacement]

    def define_branch(self, body: list[ast.stmt], names: Sequence[str]) -> ast.FunctionDef:
        return self.define([], [*_nonlocal(names), *(body or [ast.Pass()])])

    def define_accessors(
        self, names: Sequence[str], targets: Sequence[_AssignmentTarget]
    ) -> tuple[ast.FunctionDef, ast.FunctionDef]:
        """Build a getter, which returns variables, attributes and elements as a tuple, and a setter for this tuple."""
        loads: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
        loads += [_call("load", _lambda(p.value()), ast.Constant(p.text)) for p in targets]
        get = self.define([], [ast.Return(ast.Tuple(loads, ast.Load()))])
        stores: list[ast.stmt] = []
        stored: list[str | _AssignmentTarget] = [*names, *targets]
        for i, target in enumerate(stored):
            item = ast.Subscript(ast.Name(_VALUES, ast.Load()), ast.Constant(i), ast.Load())
            stores.append(_assign(target, item) if isinstance(target, str) else target.store(item, self._class_name))
        return get, self.define([_VALUES], [*_nonlocal(names), *(stores or [ast.Pass()])])

    def define(self, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
        self._serial += 1
        arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
        function = ast.FunctionDef(f"{self._name}__branch_{self._serial}", arguments, body, [])
        if "type_params" in ast.FunctionDef._fields:
            vars(function)["type_params"] = []
        return function

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        word = "and_" if isinstance(node.op, ast.And) else "or_"
        if not self.can_defer(node):
            return self.generic_visit(node)
        return self.build_shortcut(word, [self.visit(value) for value in node.values], node)

    def can_defer(self, node: ast.BoolOp | ast.Compare) -> bool:
        """Return whether operands can become functions: a function can't set some variables that `:=` sets."""
        names = _find_skippable_names(node)
        return not names or not (self._in_expression or self._globals.intersection(names))

    def build_shortcut(self, word: str, operands: list[ast.expr], node: ast.expr) -> ast.expr:
        """Build the call for ``and`` or ``or``.

        Operands after the first one become functions, which are called only if their values are needed.
        """
        *firsts, last = operands
        for value in reversed(firsts):
            last = ast.copy_location(_call(word, value, *self.defer(last)), node)
        return last

    def defer(self, operand: ast.expr) -> list[ast.expr]:
        """Build a function for an operand.

        If the operand sets variables by ``:=``, add a getter, a setter and their names.
        """
        names = sorted(_find_walrus_names(operand))
        if not names:
            return [_lambda(operand)]
        body = self.define([], [*_nonlocal(names), ast.Return(operand)])
        functions = [body, *self.define_accessors(names, [])]
        self._prelude += functions
        constants: list[ast.expr] = [ast.Constant(name) for name in names]
        return [*(ast.Name(f.name, ast.Load()) for f in functions), ast.Tuple(constants, ast.Load())]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return ast.copy_location(_call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit__Tail(self, node: _Tail) -> Any:
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        is_read = isinstance(node.ctx, ast.Load) and node.id in self._unset
        return ast.copy_location(_call("read", node), node) if is_read else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not (isinstance(node.target, ast.Name) and node.target.id in self._unset):
            return node
        check = ast.copy_location(ast.Expr(_call("read", ast.Name(node.target.id, ast.Load()))), node)
        return [check, node]

    def visit_Compare(self, node: ast.Compare) -> Any:
        names = [isinstance(each, (ast.Name, ast.Constant)) for each in node.comparators]
        self.generic_visit(node)
        if len(node.ops) == 1 or not self.can_defer(node):
            return node
        parts: list[ast.expr] = []
        left = node.left
        for k, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if k < len(node.ops) - 1 and not names[k]:
                # A rewritten comparison would evaluate the middle operand twice, or need a new variable.
                return node
            parts.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
            left = right
        return self.build_shortcut("and_", parts, node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        node.func = ast.copy_location(_call("convert_callable", node.func), node.func)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in _walk(node.body)):
            rewrite(node, self._class_name, self._unset)
        return node  # generators stay unchanged

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def rewrite_expression(self, node: Any) -> Any:
        """Rewrite an expression that has its own variables."""
        outer, self._in_expression = self._in_expression, True
        self.generic_visit(node)
        self._in_expression = outer
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = rewrite_expression

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_For(self, node: ast.For) -> Any:
        return self.rewrite_inside(node, "for")

    def visit_With(self, node: ast.With) -> Any:
        return self.rewrite_inside(node, "with")

    def visit_Try(self, node: ast.Try) -> Any:
        return self.rewrite_inside(node, "try")

    def visit_TryStar(self, node: Any) -> Any:
        return self.rewrite_inside(node, "try")

    def visit_Match(self, node: Any) -> Any:
        return self.rewrite_inside(node, "match")

    def visit_While(self, node: ast.While) -> Any:
        outer, self._inside = self._inside, self._inside or "while"
        loop = self.guard(node, "while")
        self._inside = outer
        return loop

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.guard(node, "expression")

    def visit_Assert(self, node: ast.Assert) -> Any:
        return self.guard(node, "assert")

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        word = ast.Constant("comprehension")
        node.ifs = [ast.copy_location(_call("python_only", test, word), test) for test in node.ifs]
        return node


def _find_skippable_names(node: ast.AST) -> set[str]:
    """Return the variables that an expression sets by ``:=`` in operands that Python may skip."""
    if isinstance(node, ast.BoolOp):
        return {name for value in node.values[1:] for name in _find_walrus_names(value)}
    if isinstance(node, ast.Compare):
        return {name for value in node.comparators[1:] for name in _find_walrus_names(value)}
    return set()


def _find_walrus_names(node: ast.expr) -> set[str]:
    return {part.target.id for part in _walk([node]) if isinstance(part, ast.NamedExpr)}


def _walk(statements: Sequence[ast.AST]) -> list[ast.AST]:
    """Return all syntax nodes of statements, except those inside of inner functions and classes."""
    nodes: list[ast.AST] = []
    stack: list[ast.AST] = list(statements)
    while stack:
        node = stack.pop()
        nodes.append(node)
        if isinstance(node, _Tail):
            stack += node.rest
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)
    return nodes


_OBSTACLES: dict[type[ast.AST], str] = {
    ast.Break: "break", ast.Continue: "continue", ast.Yield: "yield", ast.YieldFrom: "yield",
    ast.Delete: "del", ast.Global: "global", ast.Nonlocal: "nonlocal",
}  # fmt: skip


def _find_obstacle(statements: Sequence[ast.stmt]) -> str:
    """Return the first construct that can't be moved into a function; "" if all statements can be moved."""
    inside = {id(n) for node in _walk(statements) if isinstance(node, _LOOPS) for n in _walk(node.body)}
    kinds = (type(n) for n in _walk(statements) if not (id(n) in inside and isinstance(n, (ast.Break, ast.Continue))))
    return next((_OBSTACLES[kind] for kind in kinds if kind in _OBSTACLES), "")


_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def _find_declared_names(statements: Sequence[ast.stmt], *kinds: type[ast.Global | ast.Nonlocal]) -> list[str]:
    return [name for n in _walk(statements) if isinstance(n, kinds) for name in n.names]


def _returns(statements: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return) for node in _walk(statements))


def _always_returns(statements: Sequence[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))


def _find_assigned_names(statements: Sequence[ast.stmt]) -> list[str]:
    names = set()
    comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    local = {
        id(name)
        for node in _walk(statements)
        if isinstance(node, comprehension)
        for generator in node.generators
        for name in ast.walk(generator.target)
    }
    for node in _walk(statements):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in local:
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return sorted(names)


@dataclass(frozen=True)
class _AssignmentTarget:
    """An attribute (``point.x``) or element (``boxes[0]``) that a branch sets.

    Attributes:
        text: The target as text.
    """

    target: ast.Attribute | ast.Subscript
    text: str

    def value(self) -> ast.expr:
        """Return an expression that reads the target."""
        return _copy_to_load(self.target)

    def store(self, value: ast.expr, class_name: str) -> ast.stmt:
        """Return a statement that sets the target. Private names (`__x`) depend on the class around the code."""
        owner = _lambda(_copy_to_load(self.target.value))
        if isinstance(self.target, ast.Attribute):
            attribute = ast.Constant(mangle(self.target.attr, class_name))
            return ast.Expr(_call("store_attribute", owner, attribute, value))
        return ast.Expr(_call("store_item", owner, _copy_to_load(self.target.slice), value))


def _copy_to_load(node: ast.expr) -> ast.expr:
    """Copy an assignment target, as an expression that reads the value."""
    expression = copy.deepcopy(node)
    for part in ast.walk(expression):
        if isinstance(part, (ast.Attribute, ast.Subscript, ast.Name)):
            part.ctx = ast.Load()
    return expression


def _find_targets(statements: Sequence[ast.stmt]) -> list[_AssignmentTarget]:
    """Return the attributes and elements that statements set, unless the statements also set the object itself."""
    variables = set(_find_assigned_names(statements))
    nodes = {
        ast.unparse(node): node
        for node in _walk(statements)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
    }
    return [
        _AssignmentTarget(node, text)
        for text, node in sorted(nodes.items(), key=lambda pair: len(pair[0]))
        if _is_simple_target(node) and variables.isdisjoint(_find_names(node))
    ]


def _is_simple_target(node: ast.expr) -> bool:
    """Return whether a target is an attribute, or an element whose key is a number, text or variable."""
    if isinstance(node, ast.Attribute):
        return _is_simple_target(node.value)
    if isinstance(node, ast.Subscript):
        return _is_simple_target(node.value) and _is_key(node.slice)
    return isinstance(node, ast.Name)


def _is_key(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    return isinstance(node, (ast.Constant, ast.Name))


def _find_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _copy_statements(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [copy.deepcopy(statement) for statement in statements]


def _nonlocal_names(function: ast.FunctionDef) -> list[str]:
    first = function.body[0]
    return first.names if isinstance(first, ast.Nonlocal) else []


def _nonlocal(names: Sequence[str]) -> list[ast.stmt]:
    return [ast.Nonlocal(list(names))] if names else []


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _set_line(statement: ast.stmt, node: ast.If) -> ast.stmt:
    """Set the line of the ``if`` as a statement's first and last line.

    Otherwise, Python would report the statement's last line in tracebacks.
    """
    statement.lineno = statement.end_lineno = node.lineno
    statement.col_offset = statement.end_col_offset = node.col_offset
    return statement


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load()), list(arguments), [])


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)
