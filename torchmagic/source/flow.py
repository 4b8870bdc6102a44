"""Follow values through the text: run the cell's statements over names instead of values."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmagic.source.bindings import NO_VALUE_ATTRIBUTES, NO_VALUES
from torchmagic.source.calls import enclosing_comprehensions
from torchmagic.source.class_fields import constructed
from torchmagic.source.definitions import Definition, Frame
from torchmagic.source.filling import Filling
from torchmagic.source.hiding import hides
from torchmagic.source.loop_names import drawn_from
from torchmagic.source.operations import asks, call_name
from torchmagic.source.program import Program
from torchmagic.source.refs import ANY, Ref, Steps, ref_of
from torchmagic.source.scopes import FunctionDef, Scope, Step
from torchmagic.source.writes import Write, writes_of

_MEMBERS = frozenset(
    {"parameters", "named_parameters", "modules", "children", "named_children", "named_modules", "values", "items"}
)


_LOOPS = (ast.For, ast.AsyncFor)


class Flow(Filling):
    """Which definitions made what the cell's variables hold.

    Args:
        program: the cell and the functions it uses.
        kind_of: tells what a path of the cell's top level is: "module", "stateful" (a module with buffers),
            "optimizer", "leaf" (a tensor that collects gradients), "tensor", "object" (something that a call may
            change), "library" (an imported module), or "".
        runs: the method of a class of the program that calling a live module runs; see `Program`.
        last_line: the line at which the cell was ended by an error.
    """

    def __init__(
        self,
        program: Program,
        kind_of: Callable[[Ref], str],
        runs: Callable[[Ref, Scope, Scope, bool], bool],
        last_line: int | None = None,
    ) -> None:
        tree = program.cell.tree
        if tree is None:
            raise ValueError("a text that does not parse has no flow")
        scope = next(scope for scope in program.scopes if scope.node is tree)
        super().__init__(program, scope, kind_of, runs)
        self._last_line = last_line
        self._steps = {id(step.node): step for step in program.steps}
        self.asked: set[Definition] = set()
        """The definitions whose values the text asks for NaN or infinities, fills, drops or leaves out."""
        self._block(tree.body, self.cell)

    # Statements

    def _block(self, body: list[ast.stmt], frame: Frame, *, maybe: bool = False) -> None:
        for node in body:
            step = self._steps.get(id(node))
            if step is not None:
                self._statement(node, step, frame, maybe=maybe)
            if frame is self.cell and self._last_line is not None and (node.end_lineno or 0) >= self._last_line:
                return

    def _statement(self, node: ast.stmt, step: Step, frame: Frame, *, maybe: bool) -> None:
        if isinstance(node, (*FunctionDef, ast.ClassDef)):
            return
        self._memo.clear()
        for expression in step.own_expressions():
            self._value(expression, frame, step)
        for write in sorted(writes_of(step), key=lambda write: write.how != ":="):
            self._write(write, frame, maybe=maybe)
            if write.how == ":=" and not frame.looped and any(enclosing_comprehensions(step, write.node)):
                frame.looped = True
                self._memo.clear()
                self._write(write, frame, maybe=maybe)  # the rounds after the first, with what that one left
                frame.looped = False
        if isinstance(node, ast.Return) and node.value is not None:
            needs = self._value(node.value, frame, step)
            frame.returns.add(self._define(frame, "return", "return", step=step, needs=needs, value=node.value))
        self._inner_blocks(node, step, frame, maybe=maybe)

    def _inner_blocks(self, node: ast.stmt, step: Step, frame: Frame, *, maybe: bool) -> None:
        if isinstance(node, (*_LOOPS, ast.While)):
            outside, frame.looped = frame.looped, True
            last_line, self._last_line = self._last_line, None  # earlier rounds ran to their end
            for _ in range(2):  # the second time with what the first one left
                self._block(node.body, frame, maybe=maybe)
                self._last_line = last_line
                if not isinstance(node, ast.While):
                    self._memo.clear()
                    for write in writes_of(step):
                        self._write(write, frame, maybe=maybe)
            frame.looped = outside
            self._block(node.orelse, frame, maybe=True)
        elif isinstance(node, ast.If):
            self._block(node.body, frame, maybe=True)
            self._block(node.orelse, frame, maybe=True)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self._block(node.body, frame, maybe=maybe)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self._block(case.body, frame, maybe=True)
        elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            self._block(node.body, frame, maybe=maybe)  # type: ignore[attr-defined]
            for handler in node.handlers:  # type: ignore[attr-defined]
                self._block(handler.body, frame, maybe=True)
            self._block(node.orelse, frame, maybe=maybe)  # type: ignore[attr-defined]
            self._block(node.finalbody, frame, maybe=maybe)  # type: ignore[attr-defined]

    def _write(self, write: Write, frame: Frame, *, maybe: bool) -> None:
        needs = set(self._value(write.value, frame, write.step))
        if write.key is not None:
            self._value(write.key, frame, write.step)
        rebinds = write.kind == "bind" and not maybe
        if write.kind == "clear":
            return
        target = write.target
        if rebinds and not target.steps:
            frame.aliases.pop(target.root, None)
            frame.shares.pop(target.root, None)
        owner, ref = self._owner(target, frame)
        if owner is self.cell and self._kind_of(Ref(ref.root)) == "library":
            return  # `torch.nn.utils.clip_grad_norm_` writes into its argument
        key = self._key(owner, ref)
        how = {"bind": write.how, "augment": "augment"}.get(write.kind, write.how)
        definition = self._define(
            owner, key, how, step=write.step, needs=needs, value=write.value, node=write.node, frame=frame
        )
        definition.placed = _placed(write, ref.steps[1:] if "." in key else ref.steps)
        if write.position is not None:
            taken = (("item", write.position),)
            definition.taken = taken if definition.taken in ((), taken) else (("item", ANY),)
        self._put(owner, key, definition, rebinds=rebinds)
        if write.kind == "bind" and id(write.value) in self._fresh:
            self._rename(frame, self._fresh[id(write.value)], owner, ref)
        if write.how == "for" and write.kind == "bind" and not target.steps:
            self._share(write, frame)
        elif target.root in frame.shares and (write.kind != "bind" or target.steps):
            holder, holder_ref = frame.shares[target.root]
            steps = target.steps if target.steps == (("attr", "grad"),) else ()
            self._put(holder, self._key(holder, holder_ref + steps), definition, rebinds=False)

    def _share(self, write: Write, frame: Frame) -> None:
        """Note that a loop variable stands for an element of a container or a parameter of a module."""
        loop = write.step.node
        node = drawn_from(loop.target, loop.iter, write.target.root) if isinstance(loop, _LOOPS) else write.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MEMBERS:
            node = node.func.value
        if (ref := ref_of(node)) is not None:
            frame.shares[write.target.root] = self._owner(ref, frame)

    # Expressions

    def _value(self, node: ast.AST | None, frame: Frame, step: Step) -> set[Definition]:
        """Return the definitions whose values an expression holds, after following the calls in it."""
        if node is None:
            return set()
        memo = (id(node), id(frame))
        if memo not in self._memo:
            self._memo[memo] = set()  # a cycle adds nothing
            held = self._evaluate(node, frame, step)
            if held and hides(node, held, lambda name: self._read(Ref(name.id), frame)):
                held = {self._hide(node, held, frame, step)}
            self._memo[memo] = held
        return self._memo[memo]

    def _hide(self, node: ast.AST, held: set[Definition], frame: Frame, step: Step) -> Definition:
        """Return the definition of a value that leaves out the NaN of what it holds."""
        value = node if isinstance(node, ast.expr) else None
        definition = self._define(frame, "", "hidden", step=step, needs=set(), value=value, node=node)
        definition.hidden |= held
        self.asked |= held
        return definition

    def _evaluate(self, node: ast.AST, frame: Frame, step: Step) -> set[Definition]:
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            for part in ast.walk(node):
                if isinstance(part, ast.Subscript):
                    self._value(part.slice, frame, step)
            if isinstance(node, ast.Attribute) and (scope := self._property(node.attr)) is not None:
                return self._inline(scope, None, ref_of(node.value), frame, step)
            if (ref := ref_of(node)) is not None:
                return self._read(ref, frame)
            if isinstance(node, ast.Attribute) and node.attr in NO_VALUE_ATTRIBUTES:
                return set()
            return self._value(node.value, frame, step)  # type: ignore[union-attr]
        if isinstance(node, ast.Call):
            return self._call(node, frame, step)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            return self._comprehension(node, frame, step)
        found: set[Definition] = set()
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.IfExp) and child is node.test):
                found |= self._value(child, frame, step)
        compares = isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
        return set() if compares else found

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame, step: Step
    ) -> set[Definition]:
        hidden = dict(frame.names)
        for generator in node.generators:
            needs = self._value(generator.iter, frame, step)
            for part in ast.walk(generator.target):
                if isinstance(part, ast.Name):
                    frame.names[part.id] = set(needs)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        found: set[Definition] = set()
        for element in elements:
            found |= self._value(element, frame, step)
        bound = {part.id for g in node.generators for part in ast.walk(g.target) if isinstance(part, ast.Name)}
        for name in bound:
            frame.names.pop(name, None)
            if name in hidden:
                frame.names[name] = hidden[name]
        return found

    def _call(self, node: ast.Call, frame: Frame, step: Step) -> set[Definition]:
        function = node.func
        name = call_name(node)
        receiver = ref_of(function.value) if isinstance(function, ast.Attribute) else None
        if receiver is None and isinstance(function, ast.Attribute):
            receiver = self._made_on_the_spot(function.value, frame, step)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        held: set[Definition] = set()
        for argument in arguments:
            held |= self._value(argument, frame, step)
        if (scope := self._callee(node, name, receiver, frame)) is not None:
            return self._inline(scope, node, receiver, frame, step)
        held |= self._construct(node, frame, step)
        for argument in arguments:
            if isinstance(argument, ast.Name) and (scope := self._function(argument.id, frame)) is not None:
                held |= self._inline(scope, None, None, frame, step)
        if isinstance(function, ast.Attribute):
            if name in ("parameters", "named_parameters") and receiver is not None:
                return held | self._read(receiver, frame, gradients=True)
            held |= self._value(function.value, frame, step)
        elif not isinstance(function, ast.Name):
            held |= self._value(function, frame, step)
        elif self._is_variable(function.id, frame):
            held |= self._read(Ref(function.id), frame)
        if asks(name):
            self.asked |= held
        self._effects(node, held, frame, step)
        return set() if name in NO_VALUES else held

    def _construct(self, node: ast.Call, frame: Frame, step: Step) -> set[Definition]:
        """Give a new object of a class without a constructor of its own the attributes that the call sets."""
        fresh = f"<new {call_name(node)} {id(node)}>"
        fields: set[Definition] = set()
        for name, value in constructed(self._program, node):
            key, needs = f"{fresh}.{name}", self._value(value, frame, step)
            made = self._define(frame, key, "=", step=step, needs=needs, value=value, node=node)
            frame.names[key] = {made}
            self._fresh[id(node)] = fresh
            fields.add(made)
        return fields

    def _is_variable(self, name: str, frame: Frame) -> bool:
        owner, ref = self._owner(Ref(name), frame)
        return bool(owner.lookup(ref.root)) or self._kind_of(ref) in ("module", "stateful", "object")

    def _made_on_the_spot(self, node: ast.expr, frame: Frame, step: Step) -> Ref | None:
        """Return the path of a new object that a call makes, or hands on: `Scaler()` of `Scaler().fit(x)`."""
        if not isinstance(node, ast.Call):
            return None
        self._value(node, frame, step)
        kind = node.func.id if isinstance(node.func, ast.Name) else ""
        if id(node) not in self._fresh and any(scope.class_name == kind for scope in self._program.scopes):
            self._fresh[id(node)] = f"<new {kind} {id(node)}>"  # a class without a constructor
        return Ref(self._fresh[id(node)]) if id(node) in self._fresh else None


def _placed(write: Write, steps: Steps) -> Steps:
    """Return where under a name a write puts its value."""
    if write.kind != "store" or write.how in ("update", "extend"):
        return steps
    key = write.key.value if isinstance(write.key, ast.Constant) else ANY
    return (*steps, ("item", key))
