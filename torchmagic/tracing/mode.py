"""What happens at each operation of a watched cell: it runs, and its result is looked at."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from typing import Any

from torchmagic.tracing.calls import Call
from torchmagic.tracing.compiled import allow_uncompiled
from torchmagic.tracing.onlooker import Onlooker
from torchmagic.tracing.plans import KEEPS, LOOKS, WRITES, Plan, plan_of


def make_mode(onlooker: Onlooker) -> Any:
    """Return a dispatch mode that shows every operation to an onlooker, of a class of its own.

    The class is its own because of TorchDynamo: torch wraps `__torch_dispatch__` so that Dynamo does not compile it,
    and to wrap it imports Dynamo, which takes a second or two. Here it is wrapped once the user has imported it.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    torch = sys.modules["torch"]
    plans: dict[int, Plan] = {}
    marks, sequence_of = onlooker.lineage.marks, torch._C._autograd._get_sequence_nr  # noqa: SLF001
    count = itertools.count()
    tick = count.__next__
    plain, is_finite = (torch.Tensor, torch.nn.Parameter), onlooker.reader.is_finite

    class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Shows every operation to an onlooker."""

        active = True
        failure = ""
        supports_higher_order_operators = True

        @property
        def operations(self) -> int:
            """How many were seen; asked for once, since asking counts."""
            return next(count)

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                # What calling `func` does, without the call.
                out = func._op(*args, **kwargs) if kwargs else func._op(*args)  # noqa: SLF001
            except (RuntimeError, AttributeError) as error:
                out = retried(func, args, kwargs, error)
            if not self.active:
                return out
            tick()
            try:
                sequence = sequence_of()
                if sequence != onlooker.sequence:
                    onlooker.note_line(sequence)
                elif onlooker.rests:
                    return out
                plan = plans.get(id(func))
                if plan is None:
                    plan = plans[id(func)] = plan_of(func)
                    leave_out_of_compilation(type(self))
                look = plan.look
                if look == KEEPS:
                    if not marks:
                        return out
                elif look <= WRITES and type(out) in plain and (look == LOOKS or not marks) and is_finite(out):
                    return out
                onlooker.look(Call(plan, args, kwargs or {}, out))
            except Exception as error:
                self.active = False
                self.failure = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"[:120]
            return out

    return Watching()  # type: ignore[no-untyped-call]


def leave_out_of_compilation(mode: type) -> None:
    """Keep Dynamo, once it is there, from compiling the handler."""
    if "torch._dynamo" not in sys.modules or mode.__dict__.get("_is_left_out"):
        return
    allow_uncompiled()
    torch = sys.modules["torch"]
    mode._is_left_out = True  # type: ignore[attr-defined]  # noqa: SLF001
    handler = mode.__dict__["__torch_dispatch__"]
    try:
        from torch._dynamo.eval_frame import set_code_exec_strategy  # type: ignore[attr-defined]
        from torch._dynamo.types import FrameAction, FrameExecStrategy  # type: ignore[attr-defined]

        # Costs nothing at a call, where torch's own wrapper costs more than all the rest of the handler.
        set_code_exec_strategy(handler.__code__, FrameExecStrategy(FrameAction.SKIP, FrameAction.SKIP))
    except (ImportError, AttributeError, TypeError):
        mode.__torch_dispatch__ = torch._disable_dynamo(handler, recursive=True)  # type: ignore[attr-defined]  # noqa: SLF001


def retried(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None, error: RuntimeError | AttributeError
) -> Any:
    """Run an operation again with numbers turned into tensors where it wants tensors; `torch.jit.trace` mixes them.

    One that takes functions, such as `torch.cond`, has no `_op`, and was not run yet.
    """
    if not hasattr(func, "_op"):
        return func(*args, **(kwargs or {}))
    if "Expected a value of type 'Tensor' for argument" not in str(error):
        raise error
    torch = sys.modules["torch"]
    wanted = func._schema.arguments  # noqa: SLF001
    given = [
        torch.tensor(arg) if type(arg) in (int, float, bool) and str(spec.type) == "Tensor" else arg
        for arg, spec in zip(args, wanted, strict=False)
    ]
    return func._op(*given, **(kwargs or {}))  # noqa: SLF001
