"""Follow the calls of the program's own functions: their bodies run with the caller's paths as parameters."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable

from torchmagic.source.bindings import DEEPEST, NO_VALUE_ATTRIBUTES, Bindings
from torchmagic.source.definitions import Definition, Frame
from torchmagic.source.program import Program
from torchmagic.source.refs import Ref, ref_of
from torchmagic.source.scopes import FunctionDef, Scope, Step

_MOST_CALLS = 3000


class Inlining(Bindings):
    """Runs the functions that calls lead to.

    Args:
        program: the cell and the functions it uses.
        cell: the scope of the cell.
        kind_of: tells what a path of the cell's top level is; see `Flow`.
        runs: tells whether calling a live object runs a function of the program; see `Program`.
    """

    def __init__(
        self,
        program: Program,
        cell: Scope,
        kind_of: Callable[[Ref], str],
        runs: Callable[[Ref, Scope, Scope, bool], bool],
    ) -> None:
        super().__init__(cell, kind_of)
        self._program, self._runs = program, runs
        self._memo: dict[tuple[int, int], set[Definition]] = {}
        self._fresh: dict[int, str] = {}
        self._calls = 0

    @abstractmethod
    def _block(self, body: list[ast.stmt], frame: Frame, *, maybe: bool = False) -> None:
        """Run statements."""

    @abstractmethod
    def _value(self, node: ast.AST | None, frame: Frame, step: Step) -> set[Definition]:
        """Return the definitions whose values an expression holds."""

    @abstractmethod
    def _kind(self, ref: Ref, frame: Frame) -> str:
        """Tell what a path of a frame is."""

    def _function(self, name: str, frame: Frame) -> Scope | None:
        if name in frame.aliases or name in frame.names:
            return None
        return next((s for s in self._program.scopes if s.name == name and s.class_name is None), None)

    def _property(self, name: str) -> Scope | None:
        """Find the function that reading an attribute runs, in a class of the program."""
        for scope in self._program.scopes if name not in NO_VALUE_ATTRIBUTES else ():
            if scope.name == name and scope.class_name is not None and isinstance(scope.node, FunctionDef):
                marks = {ref.last_name for mark in scope.node.decorator_list if (ref := ref_of(mark)) is not None}
                if marks & {"property", "cached_property"}:
                    return scope
        return None

    def _callee(self, node: ast.Call, name: str, receiver: Ref | None, frame: Frame) -> Scope | None:
        if isinstance(node.func, ast.Name):
            found = self._function(name, frame)
            if found is None:
                inits = (s for s in self._program.scopes if s.class_name == name and s.name == "__init__")
                found = next(inits, None)
            return found or self._live_callee(Ref(name), frame)
        if receiver is None:
            element = ref_of(node.func)  # `self.blocks["first"](x)`, and below `Focal(2.0)(x, y)`
            made = node.func.func.id if isinstance(node.func, ast.Call) and isinstance(node.func.func, ast.Name) else ""
            forwards = (s for s in self._program.scopes if s.class_name == made and s.name == "forward")
            return self._live_callee(element, frame) if element is not None else next(forwards, None)
        if receiver.root == "super" or name.startswith("__"):
            return None
        methods = [s for s in self._program.scopes if s.class_name is not None and s.name == name]
        if methods and name not in ("step", "append", "add", "update"):
            return methods[0]
        if methods and self._kind(receiver, frame) in ("object", ""):
            return methods[0] if ref_of(node.func) != receiver else None
        return self._live_callee(Ref(receiver.root, (*receiver.steps, ("attr", name))), frame)

    def _live_callee(self, ref: Ref, frame: Frame) -> Scope | None:
        """Find the function that calling a live object runs: the `forward` of a module, a closure."""
        owner, ref = self._owner(ref, frame)
        candidates = [s for s in self._program.scopes if s.name == "forward" or (s.parent is not None and s.name)]
        for scope in candidates if owner is self.cell else ():
            if self._runs(ref, owner.scope, scope, False):  # noqa: FBT003 - as `Program` calls it
                return scope
        return None

    def _inline(
        self, scope: Scope, node: ast.Call | None, receiver: Ref | None, frame: Frame, step: Step
    ) -> set[Definition]:
        self._calls += 1
        running = any(other.scope is scope for other in self._stack)
        arguments = [] if node is None else [*node.args, *(keyword.value for keyword in node.keywords)]
        held = {d for argument in arguments for d in self._value(argument, frame, step)}
        if running or len(self._stack) > DEEPEST or self._calls > _MOST_CALLS:
            return held
        line = step.line if step.scope.unit.is_cell else frame.line
        new = Frame(scope, (*frame.ident, id(node or scope)), line, frame.looped)
        fresh = self._bind_receiver(scope, node, receiver, new, frame)
        self._bind_arguments(scope, node, new, frame, step)
        body = scope.node.body if isinstance(scope.node, FunctionDef) else []
        memo, self._memo = self._memo, {}
        self._stack.append(new)
        self._block(body, new)
        self._stack.pop()
        self._memo = memo
        if fresh is not None and node is not None:
            self._fresh[id(node)] = fresh
            return held
        if node is not None and receiver is not None and receiver.root.startswith("<new") and _returns_itself(scope):
            self._fresh[id(node)] = receiver.root
        yields = {
            d for part in ast.walk(scope.node) if isinstance(part, ast.Yield) and part.value is not None
            for d in self._value(part.value, new, step)
        }  # fmt: skip
        return new.returns | yields

    def _bind_receiver(
        self, scope: Scope, node: ast.Call | None, receiver: Ref | None, new: Frame, frame: Frame
    ) -> str | None:
        """Let `self` stand for the receiver; for a constructor, for a new object whose name is returned."""
        if scope.class_name is None or not scope.parameters:
            return None
        if scope.name == "__init__" and node is not None:
            fresh = f"<new {scope.class_name} {id(node)}>"
            frame.names.setdefault(fresh, set())
            new.aliases[scope.parameters[0]] = (frame, Ref(fresh))
            return fresh
        called = ref_of(node.func) if node is not None else None
        if scope.name == "forward" and called is not None and called.last_name != "forward":
            receiver = called
        if receiver is not None:
            new.aliases[scope.parameters[0]] = (frame, receiver)
        return None

    def _bind_arguments(self, scope: Scope, node: ast.Call | None, new: Frame, frame: Frame, step: Step) -> None:
        parameters = scope.parameters[1 if scope.class_name is not None else 0 :]
        given = dict(zip(parameters, node.args, strict=False)) if node is not None else {}
        rest: list[ast.expr | ast.keyword] = list(node.args[len(parameters) :]) if node is not None else []
        for keyword in node.keywords if node is not None else ():
            if keyword.arg in parameters:
                given[str(keyword.arg)] = keyword.value
            else:
                rest.append(keyword)
        for name, argument in given.items():
            if (ref := ref_of(argument)) is not None and not isinstance(argument, ast.Starred):
                new.aliases[name] = self._owner(ref, frame)
            else:
                new.names[name] = {self._argument(name, argument, new, frame, step)}
        if not isinstance(scope.node, (*FunctionDef, ast.Lambda)) or not rest:
            return
        if (spread := scope.node.args.vararg) is not None:
            parts = [part for part in rest if isinstance(part, ast.expr)]
            shown: ast.expr = ast.Tuple(list(parts), ast.Load())
            new.names[spread.arg] = {self._argument(spread.arg, shown, new, frame, step, parts=parts)}
        if (spread := scope.node.args.kwarg) is not None:
            keywords = [part for part in rest if isinstance(part, ast.keyword)]
            parts = [part.value for part in keywords]
            keys = [None if part.arg is None else ast.Constant(part.arg) for part in keywords]
            shown = ast.Dict([*keys], list(parts))
            new.names[spread.arg] = {self._argument(spread.arg, shown, new, frame, step, parts=parts)}

    def _argument(
        self, name: str, value: ast.expr, new: Frame, frame: Frame, step: Step, *, parts: list[ast.expr] | None = None
    ) -> Definition:
        """Return the definition of a parameter by an expression of the caller, or by `parts` shown as one."""
        needs = {d for part in parts or [value] for d in self._value(part, frame, step)}
        return self._define(new, name, "argument", step=step, needs=needs, value=value, frame=frame)


def _returns_itself(scope: Scope) -> bool:
    """Tell whether a method returns the object it is called on."""
    returned = [part.value for part in ast.walk(scope.node) if isinstance(part, ast.Return)]
    return any(isinstance(value, ast.Name) and value.id in scope.parameters[:1] for value in returned)
