# SPDX-License-Identifier: Apache-2.0
"""Rewriting a function's source so that ``if`` works on nodes. :mod:`.conditionals` is what the rewritten code calls.

    if test:                  stoker_if_0 = __stoker__.branch(test, ("x",), None)
        x = f(x)              stoker_if_0.save(__stoker__.locals())
    else:                     if stoker_if_0.takes(True):
        x = g(x)                  with stoker_if_0:
                                      x = f(x)
                                      stoker_if_0.complete(__stoker__.locals())
                              if stoker_if_0.on_node: x = stoker_if_0.old("x")
                              ... the other branch, then x = stoker_if_0.merged("x")

Attributes and elements (``self.x = ...``, ``table["x"] = ...``) are variables too, which functions without arguments
read. Their owners must not be assigned in a branch.

Everything stays in one function, so that Python's own rules for variables, loops and exceptions hold. An early
``return`` becomes an assignment: what follows an ``if`` with a ``return`` moves into its other branch. Line numbers
stay the user's.
"""

from __future__ import annotations

import ast
import copy
import inspect
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

HELPER = "__stoker__"
RESULT = "stoker_result"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
N = TypeVar("N", bound=ast.AST)


def rewrite(function: types.FunctionType, helper: Any) -> Callable[..., Any] | None:
    """Rewrite ``function`` so that its conditions may be nodes.

    Return None if its source cannot be read, if it is a generator or coroutine, or if it is inside a rewritten
    function.
    """
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    if HELPER in code.co_freevars:
        return None
    new = _rewritten(code)
    if new is None:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[HELPER] = types.CellType(helper)
    closure = tuple(cells[name] for name in new.co_freevars)
    result = types.FunctionType(new, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__module__ = function.__module__
    return result


# By the identity of the code, since equal code may come from another file. None: its source cannot be read.
_CACHED: dict[int, tuple[weakref.ref[types.CodeType], types.CodeType | None]] = {}


def _rewritten(code: types.CodeType) -> types.CodeType | None:
    """Return the rewritten code of a function, which is cached while ``code`` lives; None if its source cannot be read.

    Each definition of a pipeline rewrites all functions that it calls.
    """
    key = id(code)
    found = _CACHED.get(key)
    if found is None:
        found = weakref.ref(code, lambda _: _CACHED.pop(key, None)), _rewrite_code(code)
        _CACHED[key] = found
    return found[1]


def _rewrite_code(code: types.CodeType) -> types.CodeType | None:
    tree = _parse(code)
    if tree is None:
        return None
    tree.decorator_list = []
    _plain_signature(tree)
    _Rewriter().function(tree)
    module = ast.Module([_factory(tree, code.co_freevars)], [])
    ast.fix_missing_locations(module)
    flags = code.co_flags & _future_flags()
    namespace: dict[str, Any] = {}
    # This executes only the code of the user.
    exec(compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True), namespace)
    codes = (c for c in namespace["factory"].__code__.co_consts if isinstance(c, types.CodeType))
    new = next(c for c in codes if c.co_name == tree.name)
    return _qualified(new, new.co_qualname, code.co_qualname)


def _qualified(code: types.CodeType, generated: str, name: str) -> types.CodeType:
    """Return the code, and nested functions' code, renamed to the user's names, which tracebacks show."""
    consts = tuple(_qualified(c, generated, name) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_qualname=name + code.co_qualname.removeprefix(generated), co_consts=consts)


def _future_flags() -> int:
    import __future__

    # The feature "nested_scopes" shares its flag with another one.
    names = (n for n in __future__.all_feature_names if n != "nested_scopes")
    return sum(getattr(__future__, n).compiler_flag for n in names)


def _parse(code: types.CodeType) -> ast.FunctionDef | None:
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return None
    shift = first - 1
    text = "".join(lines)
    if lines[0][:1].isspace():  # inside a block, so that neither columns nor strings change
        text, shift = "if True:\n" + text, shift - 1
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    node: ast.stmt = tree.body[0]
    node = node.body[0] if isinstance(node, ast.If) and lines[0][:1].isspace() else node
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return None
    ast.increment_lineno(node, shift)
    return node


def _plain_signature(tree: ast.FunctionDef) -> None:
    """Remove defaults and annotations. The caller restores those of the original function."""
    args = tree.args
    args.defaults, args.kw_defaults, tree.returns = [], [None] * len(args.kwonlyargs), None
    for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *(x for x in (args.vararg, args.kwarg) if x)):
        a.annotation = None


def _factory(tree: ast.FunctionDef, free: Sequence[str]) -> ast.FunctionDef:
    """Wrap the rewritten function in one that defines its closure's variables for the compiler."""
    names = [ast.arg(n) for n in (HELPER, *free)]
    arguments = ast.arguments([], names, None, [], [], None, [])
    body: list[ast.stmt] = [tree, ast.Return(ast.Name(tree.name, ast.Load()))]
    factory = ast.parse("def factory(): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.args, factory.body = arguments, body
    return factory


# ---- analysis of a function ----


class _Assigned(ast.NodeVisitor):
    """Variables that statements assign, and effects that two branches cannot both have."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._effects: list[tuple[ast.AST, str]] = []

    def visit(self, node: ast.AST) -> None:
        self.names.update(dict.fromkeys(_binds(node)))
        what = _reaches_out(node)
        if what:
            self._effects.append((node, what))
        if isinstance(node, _COMPREHENSIONS):  # a comprehension has its own variables, except for walruses
            walruses = [n for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            self.names.update((n.target.id, None) for n in walruses)
        elif not isinstance(node, _SCOPES):
            self.generic_visit(node)

    @property
    def forbidden(self) -> tuple[str, int] | None:
        """The first effect on anything but variables, attributes and elements, and its line."""
        effects = ((what, getattr(node, "lineno", 0)) for node, what in self._effects if not self._is_place(node))
        return next(effects, None)

    @property
    def places(self) -> tuple[str, ...]:
        """The attributes and elements that are assigned, as text."""
        return tuple(dict.fromkeys(ast.unparse(node) for node, _ in self._effects if self._is_place(node)))

    def _is_place(self, node: ast.AST) -> bool:
        """Return whether a node is an attribute or element that is the same one before and after both branches."""
        match node:
            case ast.Attribute(value=owner, ctx=ast.Store()):
                return self._is_fixed(owner)
            case ast.Subscript(
                value=owner, slice=ast.Constant() | ast.UnaryOp(operand=ast.Constant()), ctx=ast.Store()
            ):
                return self._is_fixed(owner)
            case ast.Subscript(value=owner, slice=ast.Name(id=key), ctx=ast.Store()):
                return self._is_fixed(owner) and key not in self.names
        return False

    def _is_fixed(self, owner: ast.expr) -> bool:
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        return isinstance(owner, ast.Name) and owner.id not in self.names


def _binds(node: ast.AST) -> list[str]:
    """Return the variables that the node itself binds or unbinds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [a.asname or a.name.split(".")[0] for a in names]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def _reaches_out(node: ast.AST) -> str | None:
    """Return the statement's effect on anything but the function's variables; None if it has none."""
    match node:
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            return "an assignment to an attribute"
        case ast.Subscript(ctx=ast.Store() | ast.Del()):
            return "an assignment to an element"
        case ast.Global():
            return "`global`"
        case ast.Nonlocal():
            return "`nonlocal`"
    return None


def _assigned(statements: Sequence[ast.stmt]) -> _Assigned:
    found = _Assigned()
    for s in statements:
        found.visit(s)
    return found


def _own(node: ast.AST, kind: type[N]) -> list[N]:
    """Yield nodes of a kind inside ``node``, except in functions or classes defined there."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, kind):
            found.append(child)
        if not isinstance(child, _SCOPES):
            found += _own(child, kind)
    return found


def _declared_outside(node: ast.AST) -> set[str]:
    """Return the variables of a function that are global or nonlocal."""
    names = [n for g in _own(node, ast.Global) for n in g.names]
    return {*names, *(n for x in _own(node, ast.Nonlocal) for n in x.names)}


# ---- early returns ----


def _ends(block: Sequence[ast.stmt]) -> bool:
    """Return whether every path through the statements returns or raises."""
    for s in block:
        if isinstance(s, (ast.Return, ast.Raise)):
            return True
        if isinstance(s, ast.If) and _ends(s.body) and _ends(s.orelse):
            return True
    return False


def _returns(statement: ast.stmt) -> bool:
    """Return whether an ``if`` contains a ``return`` that is not inside a loop or another block."""
    if isinstance(statement, ast.Return):
        return True
    return isinstance(statement, ast.If) and any(map(_returns, (*statement.body, *statement.orelse)))


def _lifted(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Replace ``return`` by assignments. Statements after an ``if`` that returns move into its other branch."""
    out: list[ast.stmt] = []
    for i, s in enumerate(block):
        if isinstance(s, ast.Return):
            value = s.value or ast.Constant(None)
            out.append(_at(ast.Assign([ast.Name(RESULT, ast.Store())], value), s))
            return out
        if isinstance(s, ast.If) and _returns(s):
            rest = list(block[i + 1 :])
            body = s.body if _ends(s.body) else [*s.body, *rest]
            again = rest if body is s.body else copy.deepcopy(rest)
            orelse = s.orelse if _ends(s.orelse) else [*s.orelse, *again]
            out.append(_at(ast.If(s.test, _lifted(body), _lifted(orelse)), s))
            return out
        out.append(s)
    return out


def _at(new: N, old: ast.expr | ast.stmt) -> N:
    """Set the location of all parts of ``new`` without one to the first line of ``old`` (a call's line is its last)."""
    for node in ast.walk(new):
        if getattr(node, "lineno", None) is None and isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
            node.lineno = node.end_lineno = old.lineno
            node.col_offset, node.end_col_offset = old.col_offset, old.col_offset + 1
    return new


def _nowhere(nodes: Sequence[N]) -> None:
    """Remove the locations that come from parsing generated text."""
    for root in nodes:
        for node in ast.walk(root):
            for field in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
                if hasattr(node, field):
                    delattr(node, field)


# ---- the rewriting ----


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self._count = 0
        self._outer: set[str] = set()  # global and nonlocal variables of this function

    def function(self, node: ast.FunctionDef) -> None:
        """Rewrite a function's body in place."""
        kept, self._outer = self._outer, _declared_outside(node)
        if any(isinstance(s, ast.If) and _returns(s) for s in node.body):
            first = _at(ast.Assign([ast.Name(RESULT, ast.Store())], ast.Constant(None)), node.body[0])
            last = _at(ast.Return(ast.Name(RESULT, ast.Load())), node.body[-1])
            node.body = [first, *_lifted(node.body), last]
        node.body = self._block(node.body)
        self._outer = kept

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in statements:
            new = self.visit(s)
            out += new if isinstance(new, list) else [new]
        return out

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.function(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        found = _assigned([*node.body, *node.orelse])
        name, self._count = f"stoker_if_{self._count}", self._count + 1
        names, places, forbidden = tuple(found.names), found.places, found.forbidden
        shared = [n for n in names if n in self._outer]
        if shared and forbidden is None:
            forbidden = (f"an assignment to the global or nonlocal `{shared[0]}`", node.body[0].lineno)
        test = self.visit(node.test)
        branch = _call(_helper("branch"), test, _literal(names), _literal(forbidden), _literal(places))
        statements: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], branch), _do(name, "save", places)]
        statements += [*self._side(name, True, node.body, places), *_set(name, "old", (*names, *places))]
        statements += [*self._side(name, False, node.orelse, places), *_set(name, "merged", (*names, *places))]
        return [_at(s, node) for s in statements]

    def _side(self, name: str, there: bool, body: Sequence[ast.stmt], places: Sequence[str]) -> list[ast.stmt]:
        if not body:
            return []
        inner = [*self._block(body), _do(name, "complete", places)]
        guarded = ast.With([ast.withitem(ast.Name(name, ast.Load()))], inner)
        return [ast.If(_call(_method(name, "takes"), _literal(there)), [guarded], [])]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
            return node  # the assignment would be local to a lambda
        name = "all" if isinstance(node.op, ast.And) else "any"
        return _at(_call(_helper(name), *map(_later, node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _at(_call(_helper("invert"), node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(n, ast.NamedExpr) for part in (node.body, node.orelse) for n in ast.walk(part)):
            return node
        return _at(_call(_helper("choose"), node.test, _later(node.body), _later(node.orelse)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 or any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
            return node
        names = _literal(tuple(type(o).__name__ for o in node.ops))
        return _at(_call(_helper("chain"), names, node.left, *map(_later, node.comparators)), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _at(_call(_helper("callee"), node.func), node.func)
        return node


def _helper(name: str) -> ast.expr:
    return _method(HELPER, name)


def _method(owner: str, name: str) -> ast.expr:
    return ast.Attribute(ast.Name(owner, ast.Load()), name, ast.Load())


def _call(function: ast.expr, *args: ast.expr) -> ast.expr:
    return ast.Call(function, list(args), [])


def _later(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _literal(value: Any) -> ast.expr:
    literal = ast.parse(repr(value), mode="eval").body
    _nowhere([literal])
    return literal


def _do(name: str, method: str, places: Sequence[str]) -> ast.stmt:
    """Return the statement ``name.method(__stoker__.locals(), lambda: place, ...)``."""
    reads = [ast.parse(place, mode="eval").body for place in places]
    _nowhere(reads)
    return ast.Expr(_call(_method(name, method), _call(_helper("locals")), *map(_later, reads)))


def _set(name: str, method: str, variables: Sequence[str]) -> list[ast.stmt]:
    """Assign the variables' values, and delete variables without one."""
    if not variables:
        return []
    text = [f"if {name}.on_node:"]
    for v in variables:
        text += [f"    {v} = {name}.{method}({v!r})", f"    if {v} is {HELPER}.UNBOUND:", f"        del {v}"]
    statements = ast.parse("\n".join(text)).body
    _nowhere(statements)
    return statements
