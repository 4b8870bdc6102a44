"""Make up namespaces that nobody would think of, out of bytes: the same bytes make the same namespace."""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.odd_objects import Computing, Holder, Hostile, HostileDict, HostileList, Pair, Record, Slots, Subclass

NUMBERS = (0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e38)
DTYPES = ("f4", "f8", "f2", "c8", "O", "M8[D]", "U3", "i4")

TENSORS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda base: base,
    lambda base: base.clone().requires_grad_(),
    lambda base: base.clone().requires_grad_() * 2,
    lambda base: nn.Parameter(base.clone()),
    lambda base: _with_gradient(base.clone().requires_grad_()),
    lambda base: _retaining(base.clone().requires_grad_() * 3),
    lambda base: base[:1],
    lambda base: base.expand(3, -1),
    lambda base: base.view(-1, 1).t(),
    lambda base: base.unfold(0, 1, 1),
    lambda base: base.half(),
    lambda base: base.bfloat16(),
    lambda base: base.to(torch.complex64).conj(),
    lambda base: base.to("meta"),
    lambda base: base.to_sparse(),
    lambda base: base.view(1, -1).to_sparse_csr(),
    lambda base: base.to(torch.float8_e5m2),
    lambda base: torch.nested.nested_tensor([base, base]),
    lambda base: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    lambda base: torch.from_numpy(np.array([1.0, np.nan])),
    lambda base: base.as_subclass(Subclass),
    lambda base: base.double().sum(),
    lambda base: torch.inference_mode()(torch.ones)(2),
    lambda base: torch.empty(0),
    lambda base: torch.arange(3),
    lambda base: torch.tensor(True),
)


def _with_gradient(leaf: torch.Tensor) -> torch.Tensor:
    (leaf * leaf).sum().backward()
    return leaf


def _retaining(value: torch.Tensor) -> torch.Tensor:
    value.retain_grad()
    value.sum().backward(retain_graph=True)
    return value


MODULES: tuple[Callable[[], nn.Module], ...] = (
    lambda: nn.Linear(2, 2),
    lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)),
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
    lambda: nn.ModuleDict({"a b": nn.Linear(2, 2)}),
    lambda: nn.LazyLinear(2),
    lambda: nn.ParameterList([torch.ones(2)]),
    lambda: Holder(torch.ones(2)),
    lambda: Holder([nn.Linear(2, 2)]),
)
TRAINABLE = 3
"""The first modules, which take two features."""

CONTAINERS: tuple[Callable[..., Any], ...] = (
    lambda *parts: list(parts),
    lambda *parts: parts,
    lambda *parts: dict(enumerate(parts)),
    lambda *parts: {f"key {i}": part for i, part in enumerate(parts)},
    lambda *parts: collections.deque(parts),
    lambda *parts: collections.defaultdict(list, enumerate(parts)),
    lambda *parts: collections.OrderedDict(enumerate(parts)),
    lambda *parts: HostileList(parts),
    lambda *parts: HostileDict(enumerate(parts)),
    lambda *parts: [*parts, *parts],
    lambda *parts: Pair(parts[0], parts[-1]),
    lambda *parts: Record(*parts[:2]),
    lambda *parts: Slots(parts[0]),
    lambda *parts: Computing(parts[0]),
    lambda *parts: types.SimpleNamespace(first=parts[0], last=parts[-1]),
    lambda *parts: lambda: parts,
    lambda *parts: functools.partial(max, *parts),
    lambda *parts: (part for part in parts),
    lambda *parts: iter(parts),
    lambda *parts: type("Held", (), {"__module__": "__main__", "value": parts[0]}),
)


def _cyclic() -> list[Any]:
    cycle: list[Any] = [torch.ones(2)]
    cycle.append(cycle)
    return cycle


OTHERS: tuple[Callable[[], Any], ...] = (
    Hostile,
    _cyclic,
    lambda: weakref.proxy(Record(1)),
    lambda: None,
    lambda: 7,
    lambda: "text",
    lambda: torch,
    lambda: len,
    lambda: Hostile,
    lambda: torch.ones(1).item,
    lambda: np.float32("nan"),
    torch.Generator,
    lambda: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2))),
)


def _is_sliceable(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested and tensor.dim() > 0


class Maker:
    """Makes objects by what the next bytes say; where they end, the first of everything.

    `made` are all objects that were made, `tensors` those among them that are tensors, gradients and state included.
    """

    def __init__(self, choices: bytes) -> None:
        self._choices = iter(choices)
        self.made: list[Any] = []
        self.tensors: list[torch.Tensor] = []

    def below(self, end: int) -> int:
        """Return a number from 0 on."""
        return next(self._choices, 0) % end

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of the options."""
        return options[self.below(len(options))]

    def namespace(self) -> dict[str, Any]:
        """Return up to five variables."""
        return {name: self.value(3) for name in "abcde"[: self.below(6)]}

    def value(self, depth: int) -> Any:
        """Return an object, or one that stands elsewhere already."""
        kind = self.below(10 if depth else 6)
        if kind == 5 and self.made:
            return self.pick(self.made)
        makers = (self.tensor, self.module, self.array, lambda: self.pick(NUMBERS), self.other)
        if kind < 6:
            made = makers[kind % 5]()
        else:
            made = self.pick(CONTAINERS)(*[self.value(depth - 1) for _ in range(1 + self.below(3))])
        self.made.append(made)
        return made

    def other(self) -> Any:
        """Return something odd, or something that is no tensor at all."""
        return self.pick(OTHERS)()

    def tensor(self) -> torch.Tensor:
        """Return a tensor of one of many kinds, or a view of one that was made before."""
        base = torch.tensor([self.pick(NUMBERS) for _ in range(1 + self.below(4))])
        plain = [t for t in self.tensors if type(t) is torch.Tensor and _is_sliceable(t)]
        earlier = self.pick(plain) if plain and self.below(3) == 2 else None
        tensor = earlier.detach()[:1] if earlier is not None else self.pick(TENSORS)(base)
        self._know(tensor)
        return tensor

    def array(self) -> Any:
        """Return a numpy array of one of many kinds."""
        dtype, values = self.pick(DTYPES), [self.pick(NUMBERS) for _ in range(self.below(4))]
        with np.errstate(all="ignore"):
            return np.ones(len(values), dtype) if dtype in ("M8[D]", "U3", "i4") else np.array(values, dtype)

    def module(self) -> Any:
        """Return a module, or one that was trained for a step beside its optimizer."""
        number = self.below(len(MODULES))
        module = MODULES[number]()
        held = [module]
        if number < TRAINABLE and self.below(2):
            optimizer = self.pick([torch.optim.SGD, torch.optim.Adam])(module.parameters(), lr=0.1)
            module(torch.full((3, 2), self.pick(NUMBERS))).sum().backward()
            optimizer.step()
            held.append(optimizer)
            for state in optimizer.state.values():
                self._know(*[value for value in state.values() if type(value) is torch.Tensor])
        if number != 4:
            self._know(*module.parameters(), *module.buffers())
        self.made.append(module)
        return held if len(held) > 1 else module

    def _know(self, *tensors: torch.Tensor) -> None:
        for tensor in tensors:
            self.tensors.append(tensor)
            if tensor.is_leaf and tensor.grad is not None:
                self.tensors.append(tensor.grad)
