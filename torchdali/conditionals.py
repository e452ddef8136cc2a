"""``if``, ``and``, ``or`` and ``not`` on `DataNode`s, by rewriting the pipeline function's syntax tree.

An ``if`` on a node runs both branches while tracing; what they record carries the condition, so that each
operator runs only for the samples of its branch. Variables that the branches set are merged afterwards. An
``if`` on anything else is Python's own. Functions that the pipeline function calls are rewritten too, when they
are called, except those of installed packages and those marked with `do_not_convert`.

What cannot be rewritten stays as it is and says so when a node meets it (`DataNode.__bool__`): ``while``, the
conditional expression, ``assert``, and an ``if`` that contains ``break``, ``continue``, ``yield`` or ``del``.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from torchdali import graph
from torchdali.graph import Condition, DataNode
from torchdali.operator import as_node, lookup

__all__ = ["convert", "do_not_convert"]

F = TypeVar("F", bound=Callable[..., Any])

_RUNTIME = "__torchdali_conditionals__"
_INSTALLED = tuple(
    sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")
)


def do_not_convert(func: F) -> F:
    """Keep a function as it is when a pipeline with conditionals calls it."""
    func._do_not_convert = True  # type: ignore[attr-defined]
    return func


def convert(function: Callable[..., Any], *, always: bool = False) -> Callable[..., Any]:
    """Return a function in which ``if``, ``and``, ``or`` and ``not`` also work on nodes.

    Args:
        always: Also rewrite a function of an installed package.

    Returns the function itself where it cannot or need not be rewritten.
    """
    if isinstance(function, types.MethodType):
        return types.MethodType(convert(function.__func__), function.__self__)
    if isinstance(function, functools.partial):
        return functools.partial(convert(function.func), *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType) or not (always or _convertible(function)):
        return function
    return _rewritten(function)


def _convertible(function: types.FunctionType) -> bool:
    file = function.__code__.co_filename
    return not (
        hasattr(function, "_do_not_convert")
        or hasattr(function, "operator")
        or function.__name__ == "<lambda>"
        or function.__module__.partition(".")[0] == "torchdali"
        or file.startswith(_INSTALLED)
        or inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
    )


@functools.lru_cache(maxsize=256)
def _code(code: types.CodeType) -> types.CodeType | None:
    """Rewrite the code of a function; None where its source cannot be had."""
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    ast.increment_lineno(tree, first - 1)
    definition.decorator_list = []
    _Rewriter().function(definition)
    # A factory with the same free variables makes the compiler resolve them as cells again.
    free = (*code.co_freevars, _RUNTIME)
    arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    factory = ast.FunctionDef("__factory__", arguments, [definition], [])
    if "type_params" in ast.FunctionDef._fields:
        factory.type_params = []  # type: ignore[attr-defined]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    compiled = compile(
        module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE
    )
    return _inner(_inner(compiled, "__factory__"), definition.name)


_FUTURE = __import__("__future__").annotations.compiler_flag


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _rewritten(function: types.FunctionType) -> Callable[..., Any]:
    code = _code(function.__code__)
    if code is None:
        return function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[_RUNTIME] = types.CellType(sys.modules[__name__])
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


# ---------------------------------------------------------------- rewriting


class _Rewriter(ast.NodeTransformer):
    """Rewrites the body of one function."""

    def __init__(self) -> None:
        self._serial = 0
        self._name = ""

    def function(self, definition: ast.FunctionDef) -> None:
        """Rewrite in place; variables that a branch sets exist, undefined, from the start."""
        self._name = definition.name
        parameters = {a.arg for a in ast.walk(definition.args) if isinstance(a, ast.arg)}
        declared = {
            name
            for node in _own(definition.body)
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }
        branched = {
            name
            for node in _own(definition.body)
            if isinstance(node, ast.If) and _movable(node)
            for name in _targets([node])
        }
        if any(
            isinstance(n, ast.If) and _movable(n) and _returns([n]) for n in _own(definition.body)
        ):
            branched |= set(_targets(definition.body))  # what follows it moves into its branches
        definition.body = self.block(definition.body)
        starts = [
            _assign(name, _call("undefined", ast.Constant(name)))
            for name in sorted(branched - parameters - declared)
        ]
        after_docstring = 1 if ast.get_docstring(definition) is not None else 0
        definition.body[after_docstring:after_docstring] = starts

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements; what follows an ``if`` that returns moves into its branches."""
        done: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            if isinstance(statement, ast.If) and _movable(statement) and _returns([statement]):
                return [*done, *self.returning(statement, statements[i + 1 :])]
            made = self.visit(statement)
            done += made if isinstance(made, list) else [made]
        return done

    def returning(self, node: ast.If, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite an ``if`` with a return in it as ``return if_return(test, body, orelse)``."""
        branches = []
        for branch in (node.body, node.orelse):
            whole = list(branch) if _always_returns(branch) else [*branch, *rest]
            branches.append(self.branch(self.block(_copied(whole)), _targets(whole)))
        call = _call(
            "if_return", self.visit(node.test), *[ast.Name(f.name, ast.Load()) for f in branches]
        )
        return [*branches, ast.copy_location(ast.Return(call), node)]

    def visit_If(self, node: ast.If) -> Any:
        if not _movable(node):
            return self.generic_visit(node)
        names = _targets([node])
        body = self.branch(self.block(node.body), names)
        orelse = self.branch(self.block(node.orelse), names)
        get, put = self.accessors(names)
        functions = [body, orelse, get, put]
        call = _call(
            "if_else", self.visit(node.test), *[ast.Name(f.name, ast.Load()) for f in functions],
            ast.Tuple([ast.Constant(name) for name in names], ast.Load()),
        )  # fmt: skip
        made = [*functions, ast.Expr(call)]
        return [ast.copy_location(statement, node) for statement in made]

    def branch(self, body: list[ast.stmt], names: Sequence[str]) -> ast.FunctionDef:
        return self.define([], [*_nonlocal(names), *(body or [ast.Pass()])])

    def accessors(self, names: Sequence[str]) -> tuple[ast.FunctionDef, ast.FunctionDef]:
        load = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        store = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        get = self.define([], [ast.Return(load)])
        assign: list[ast.stmt] = (
            [ast.Assign([store], ast.Name("values", ast.Load()))] if names else [ast.Pass()]
        )
        return get, self.define(["values"], [*_nonlocal(names), *assign])

    def define(self, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
        self._serial += 1
        arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
        made = ast.FunctionDef(f"{self._name}__branch_{self._serial}", arguments, body, [])
        if "type_params" in ast.FunctionDef._fields:
            made.type_params = []  # type: ignore[attr-defined]
        return made

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        *firsts, last = [self.visit(value) for value in node.values]
        for value in reversed(firsts):
            last = ast.copy_location(_call(name, value, _lambda(last)), node)
        return last

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return (
            ast.copy_location(_call("not_", node.operand), node)
            if isinstance(node.op, ast.Not)
            else node
        )

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        parts: list[ast.expr] = []
        left = node.left
        for k, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if k < len(node.ops) - 1 and not isinstance(right, (ast.Name, ast.Constant)):
                return (
                    node  # naming the middle operand would need a new variable in the user's scope
                )
            parts.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
            left = right
        *firsts, last = parts
        for value in reversed(firsts):
            last = ast.copy_location(_call("and_", value, _lambda(last)), node)
        return last

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        node.func = ast.copy_location(_call("converted", node.func), node.func)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        _Rewriter().function(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.visit(node.iter)
        node.body, node.orelse = (
            self.block(node.body),
            self.block(node.orelse) if node.orelse else [],
        )
        return node


def _own(statements: Sequence[ast.stmt]) -> list[ast.AST]:
    """Return all nodes of statements, without those inside functions and classes they define."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(statements)
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)
    return found


def _movable(node: ast.If) -> bool:
    """Whether the branches can become functions."""
    fixed = (
        ast.Break,
        ast.Continue,
        ast.Yield,
        ast.YieldFrom,
        ast.Await,
        ast.Delete,
        ast.Global,
        ast.Nonlocal,
    )
    return not any(isinstance(inner, fixed) for inner in _own([node]))


def _returns(statements: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return) for node in _own(statements))


def _always_returns(statements: Sequence[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))


def _targets(statements: Sequence[ast.stmt]) -> list[str]:
    """Return the names that statements bind, sorted."""
    found = set()
    comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    local = {
        id(name)
        for node in _own(statements)
        if isinstance(node, comprehension)
        for generator in node.generators
        for name in ast.walk(generator.target)
    }
    for node in _own(statements):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in local:
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return sorted(found)


def _copied(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [copy.deepcopy(statement) for statement in statements]


def _nonlocal(names: Sequence[str]) -> list[ast.stmt]:
    return [ast.Nonlocal(list(names))] if names else []


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(
        ast.Attribute(ast.Name(_RUNTIME, ast.Load()), name, ast.Load()), list(arguments), []
    )


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


# ---------------------------------------------------------------- what the rewritten code calls


class Undefined:
    """The value of a variable that has not been set, or only in one branch."""

    def __init__(self, name: str, reason: str = "is used before it is set") -> None:
        self.__dict__["message"] = f"the variable {name!r} {reason}"

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(self.__dict__["message"])

    __getattr__ = __call__ = __bool__ = __iter__ = __getitem__ = __len__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        _raise
    )
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _raise


def undefined(name: str) -> Undefined:
    """Make the value of a variable before it is set."""
    return Undefined(name)


def converted(function: Any) -> Any:
    """Return what to call instead of a function."""
    return (
        convert(function)
        if isinstance(function, (types.FunctionType, types.MethodType))
        else function
    )


def if_else(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
) -> None:
    """Run an ``if``: one branch for a Python value, both for a node, merging what they set."""
    if not isinstance(test, DataNode):
        (body if test else orelse)()
        return
    before = get()
    _traced(test, True, body)
    on_true = get()
    put(before)
    _traced(test, False, orelse)
    on_false = get()
    put(
        tuple(_merge_variable(test, *v) for v in zip(names, before, on_true, on_false, strict=True))
    )


def if_return(test: Any, body: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """Run an ``if`` whose branches return."""
    if not isinstance(test, DataNode):
        return (body if test else orelse)()
    on_true, on_false = _traced(test, True, body), _traced(test, False, orelse)
    if (on_true is None) != (on_false is None):
        raise RuntimeError(
            "a branch of an `if` on a node returns a value and the other does not; both must"
        )
    return _merge(test, on_true, on_false, "the returned value")


def and_(left: Any, right: Callable[[], Any]) -> Any:
    """Compute ``left and right()``."""
    if not isinstance(left, DataNode):
        return left and right()
    return _shortcut(left, right, "and")


def or_(left: Any, right: Callable[[], Any]) -> Any:
    """Compute ``left or right()``."""
    if not isinstance(left, DataNode):
        return left or right()
    return _shortcut(left, right, "or")


def not_(value: Any) -> Any:
    """Compute ``not value``."""
    return lookup("_not")(value) if isinstance(value, DataNode) else not value


def _shortcut(left: DataNode, right: Callable[[], Any], word: str) -> Any:
    left = lookup("_logical")(left, expression=word, side="left")
    other = _traced(
        left,
        word == "and",
        lambda: lookup("_logical")(as_node(right()), expression=word, side="right"),
    )
    on_true, on_false = (other, left) if word == "and" else (left, other)
    return _merge(left, on_true, on_false, f"the result of `{word}`")


def _traced(test: DataNode, value: bool, branch: Callable[[], Any]) -> Any:
    """Run a branch, marking what it records with the condition."""
    if test.device != "cpu":
        raise RuntimeError(f"the condition {test} must be on the CPU; use .cpu()")
    tracer = graph.current()
    if tracer is None:
        raise RuntimeError("`if` on a node works while a pipeline is being defined")
    outer = tracer.scope
    while test.source is not None and test.source.operator.name == "_not":
        negated = test.source.inputs[0]
        assert negated is not None
        test, value = negated, not value
    tracer.scope = (*outer, Condition(test, value))
    try:
        return branch()
    finally:
        tracer.scope = outer


def _merge_variable(test: DataNode, name: str, before: Any, on_true: Any, on_false: Any) -> Any:
    for value, branch in ((on_true, "if"), (on_false, "else")):
        if isinstance(value, Undefined):
            if on_true is on_false:
                return before
            return Undefined(
                name, f"is not set in the {branch!r} branch of an `if` on {test}; both must set it"
            )
    return _merge(test, on_true, on_false, f"the variable {name!r}")


def _merge(test: DataNode, on_true: Any, on_false: Any, what: str) -> Any:
    """Merge the values of two branches; lists, tuples and dicts element by element."""
    if on_true is on_false:
        return on_true
    for kind in (list, tuple):
        if (
            isinstance(on_true, kind)
            and isinstance(on_false, kind)
            and len(on_true) == len(on_false)
        ):
            pairs = zip(on_true, on_false, strict=True)
            return kind(_merge(test, a, b, f"{what}[{i}]") for i, (a, b) in enumerate(pairs))
    if (
        isinstance(on_true, dict)
        and isinstance(on_false, dict)
        and on_true.keys() == on_false.keys()
    ):
        return {k: _merge(test, on_true[k], on_false[k], f"{what}[{k!r}]") for k in on_true}
    if isinstance(on_true, (list, tuple, dict)) and isinstance(on_false, (list, tuple, dict)):
        raise ValueError(
            f"{what} has another structure in each branch of an `if` on {test}: {on_true} and {on_false}"
        )
    number = (DataNode, bool, int, float, np.generic, np.ndarray)
    if not isinstance(on_true, number) or not isinstance(on_false, number):
        raise TypeError(
            f"{what} is {_kind(on_true)} in one branch of an `if` on {test} and {_kind(on_false)} in the other: "
            "only nodes, numbers, arrays, and lists or dicts of them of equal structure can be merged"
        )
    return lookup("_merge")(as_node(on_true), as_node(on_false), condition=test, what=what)


def _kind(value: Any) -> str:
    return "a node" if isinstance(value, DataNode) else f"a {type(value).__name__}"
