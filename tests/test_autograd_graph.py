"""The bytes of a graph are those that torch saved for backward, and reading them runs nobody's hook."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torchmagic.autograd_graph import read_graph


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(6, 8, num_layers=2, batch_first=True), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(x + self.attention(x, x, x)[0])


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x * 2)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[1]


class _Custom(nn.Linear):
    def forward(self, x):
        return _Square.apply(super().forward(x))


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 3), nn.Softmax(1)), (5, 6)),
    "convolution and batch norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2), nn.Flatten()),
        (2, 3, 8, 8),
    ),
    "lstm": (_Recurrent, (3, 7, 6)),
    "gru": (lambda: nn.GRU(6, 8), (7, 3, 6)),
    "attention": (_Attention, (2, 5, 8)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
    "custom function": (lambda: _Custom(6, 3), (5, 6)),
}


def _first(output):
    return (output[0] if isinstance(output, tuple) else output).sum()


def _saved_bytes(model: nn.Module, x: torch.Tensor) -> int:
    """Return the bytes that torch hands to `saved_tensors_hooks`, each storage once, parameters not counted."""
    sizes = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = _first(model(x))
    assert loss.grad_fn is not None  # what was packed is alive until here
    return sum(sizes.values())


NUMBERS = {"attention": 1}
"""Python numbers among the operands, here the scale of the queries: torch saves 8 bytes for each and tells no hook."""


@pytest.mark.parametrize("name", MODELS)
def test_the_bytes_are_those_that_torch_saved(name):
    """Counted through the graph and through torch's own hooks, they are the same to the byte."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model, x = make(), torch.randn(shape)
    expected = _saved_bytes(model, x) + 8 * NUMBERS.get(name, 0)

    graph = read_graph([_first(model(x))])

    assert expected > 0
    assert (graph.saved_bytes, graph.hooked, graph.is_freed) == (expected, 0, False)


def test_bytes_that_are_known_by_arithmetic():
    """A linear layer saves its input; the square saves its argument; parameters are not counted."""
    x, layer = torch.ones(100, 10), nn.Linear(10, 5)

    graph = read_graph([layer(x).pow(2).sum()])

    assert (graph.saved_bytes, graph.nodes) == (100 * 10 * 4 + 100 * 5 * 4, 6)


def test_backward_frees_the_bytes_and_leaves_the_nodes():
    """The nodes stay as long as the loss does."""
    loss = nn.Linear(10, 5)(torch.ones(100, 10)).pow(2).sum()
    loss.backward()

    graph = read_graph([loss])

    assert (graph.saved_bytes, graph.nodes, graph.is_freed) == (0, 6, True)


def test_each_value_adds_its_own_part():
    """The parameters' nodes are there once; each later step adds its operations and its activations."""
    layer = nn.Linear(10, 5)

    graph = read_graph([layer(torch.ones(rows, 10)).pow(2).sum() for rows in (100, 100, 50)])

    assert [(part.nodes, part.saved_bytes) for part in graph.parts] == [(6, 6000), (4, 6000), (4, 3000)]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_not_recomputed(reentrant):
    """What it will compute again in backward takes no memory now; looking does not run it."""
    runs = []

    class Block(nn.Linear):
        def forward(self, x):
            runs.append(1)
            return super().forward(x).relu()

    block, x = Block(10, 10), torch.ones(100, 10, requires_grad=True)
    loss = checkpoint(block, x, use_reentrant=reentrant).pow(2).sum()

    graph = read_graph([loss])

    assert (runs, graph.saved_bytes) == ([1], 100 * 10 * 4)
    assert (graph.hooked > 0) is not reentrant


def test_no_hook_runs():
    """Neither a hook on saved tensors, nor one of a node or a tensor, is called; what was packed is only counted."""
    calls = []
    layer = nn.Linear(10, 5)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: calls.append("unpack") or t):
        hidden = layer(torch.ones(100, 10))
        hidden.register_hook(lambda gradient: calls.append("tensor"))
        loss = hidden.pow(2).sum()
    loss.grad_fn.register_hook(lambda *gradients: calls.append("node"))
    loss.grad_fn.register_prehook(lambda *gradients: calls.append("before node"))

    graph = read_graph([loss])

    assert (calls, graph.saved_bytes, graph.hooked > 0) == ([], 0, True)
    loss.backward()
    assert set(calls) == {"unpack", "tensor", "node", "before node"}
