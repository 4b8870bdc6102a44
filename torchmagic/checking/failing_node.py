"""Where exactly it failed: the expression, where Python tells (3.11 and later), and which frames are torch's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import CodeType, TracebackType

from torchmagic.checking.facts import Facts, FailedFrame
from torchmagic.source import Step
from torchmagic.source.user_files import is_user_file

_KERNELS = re.compile(
    r"torch[/\\](_meta_registrations|_prims|_prims_common|_refs|_decomp|_subclasses|_ops|_library|_compile"
    r"|utils[/\\](_python_dispatch|_device|_stats)|overrides)\b"
)
"""Files of torch in which operations without frames are worked out when tensors are meta, fake or subclasses."""

_TRANSFORMS = re.compile(r"torch[/\\](_dynamo|_functorch|_inductor)\b")

Span = tuple[int, int, int, int]


def running_expression(facts: Facts, frame: FailedFrame, step: Step) -> ast.AST | None:
    """Return the part of a frame's statement that was running when it failed; None where that is not told."""
    span = _failing_span(facts, frame)
    if span is None:
        return None
    parts = [part for part in ast.walk(step.node) if isinstance(part, (ast.expr, ast.stmt))]
    exact = [part for part in parts if _span(part) == span]
    if exact:
        return exact[-1]  # an expression, before the statement that is nothing but it
    # The call of a method on a line of its own starts, for Python, where the method's name does.
    return next(
        (p for p in parts if isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute) and _end(p) == span[2:]),
        None,
    )


def runs_in(facts: Facts, frame: FailedFrame, node: ast.stmt) -> bool:
    """Tell whether what a frame was running stands within a statement; True where that is not told."""
    span = _failing_span(facts, frame)
    if span is None:
        return True
    start, column, end, end_column = _span(node)
    return (start, column) <= span[:2] and span[2:] <= (end, end_column)


def kernel_frames(facts: Facts) -> int:
    """Return how many of the innermost frames belong to an operation that has none on ordinary tensors."""
    is_kernel: list[bool] = []
    for code in _codes(facts):
        is_kernel = [] if is_user_file(code.co_filename) else [*is_kernel, _is_kernel(code)]
    return len(is_kernel) - is_kernel.index(True) if True in is_kernel else 0


def is_transformed(facts: Facts) -> bool:
    """Tell whether `torch.compile` or a transform such as `vmap` ran the code: its tensors are not what they seem."""
    inside_kernel = False
    for code in _codes(facts):
        inside_kernel = not is_user_file(code.co_filename) and (inside_kernel or _is_kernel(code))
        if not inside_kernel and _TRANSFORMS.search(code.co_filename):
            return True
    return False


def _codes(facts: Facts) -> Iterator[CodeType]:
    """Yield the code of every frame of the error, the outermost first."""
    trace = facts.error.__traceback__ if facts.error is not None else None
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next


def _is_kernel(code: CodeType) -> bool:
    return _KERNELS.search(code.co_filename) is not None or code.co_name == "__torch_function__"


def _failing_span(facts: Facts, frame: FailedFrame) -> Span | None:
    """Return the lines and byte columns of the instruction that a frame was at."""
    last: TracebackType | None = None
    trace = facts.error.__traceback__ if facts.error is not None else None
    while trace is not None:
        code = trace.tb_frame.f_code
        if (code.co_filename, code.co_name, trace.tb_lineno) == (frame.filename, frame.function, frame.line):
            last = trace
        trace = trace.tb_next
    positions = getattr(last.tb_frame.f_code, "co_positions", None) if last is not None else None
    if positions is None or last is None:
        return None
    start, end, column, end_column = list(positions())[last.tb_lasti // 2]
    return None if None in (start, end, column, end_column) else (start, column, end, end_column)


def _span(node: ast.expr | ast.stmt) -> Span:
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _end(node: ast.expr) -> tuple[int, int]:
    return (node.end_lineno or 0, node.end_col_offset or 0)
