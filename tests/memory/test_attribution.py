"""Every byte of the tensors and arrays alive belongs to one holder, and to the name a person would look under."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch import nn

import torchmagic
from tests.fingerprints import fingerprint, global_state


def holders(names, **options):
    """Return the bytes of each holder on the host."""
    return {holder.path: holder.bytes for holder in torchmagic.memory(names, **options).holders}


def split(names, path):
    """Return what one holder uses its bytes for."""
    return next(dict(holder.split) for holder in torchmagic.memory(names).holders if holder.path == path)


def test_a_tensor_counts_its_bytes():
    """Four bytes for each float32."""
    assert holders({"x": torch.zeros(10, 3)}) == {"x": 120}


def test_views_are_their_base():
    """What shares a storage is counted once, under the shortest name, and the whole storage is alive."""
    x = torch.zeros(1000)

    assert holders({"batch": [x[10:]], "row": x[:4], "x2": x.view(10, 100).T}) == {"row": 4000}


def test_an_array_and_its_tensor_are_one():
    """Whichever way the memory was shared, and however little of it is seen."""
    array = np.zeros(100)

    assert holders({"array": array, "t": torch.from_numpy(array[10:])}) == {"array": 800}
    assert holders({"t": torch.from_numpy(array[10:])}) == {"t": 720}
    assert holders({"part": array[:2]}) == {"part": 800}
    assert holders({"part": torch.zeros(50)[:5].numpy()}) == {"part": 200}


def test_a_mapped_file_is_no_memory(tmp_path):
    """Its pages are the file's."""
    mapped = np.memmap(tmp_path / "data", dtype=np.float32, mode="w+", shape=(1000,))

    assert holders({"mapped": mapped, "part": mapped[3:], "x": torch.zeros(1)}) == {"x": 4}


def test_tied_weights_count_once():
    """An embedding and the layer that uses its weight."""
    model = nn.ModuleDict({"embedding": nn.Embedding(10, 5), "head": nn.Linear(5, 10, bias=False)})
    model["head"].weight = model["embedding"].weight

    assert holders({"model": model}) == {"model": 200}


def test_the_uses_of_a_training_step_are_told_apart():
    """Parameters, gradients, buffers and the moments of Adam, with their counters of steps."""
    model = nn.Sequential(nn.Linear(10, 10), nn.BatchNorm1d(10))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.zeros(2, 10)).sum().backward()
    optimizer.step()
    names = {"model": model, "optimizer": optimizer}

    assert split(names, "model") == {"parameters": 520, "gradients": 520, "buffers": 88}
    assert split(names, "optimizer") == {"optimizer state": 1056}


def test_what_a_model_registers_is_the_models_whatever_else_names_it():
    """After a loop over the parameters the loop's variable names the last one."""
    model = nn.Sequential(nn.Linear(3, 4))
    names = {"model": model, "layer": model[0], "p": model[0].bias, "params": list(model.parameters())}

    assert holders(names) == {"model": 64}
    model[0].bias.grad = torch.zeros(4)
    assert split(names, "model") == {"parameters": 64, "gradients": 16}


def test_an_optimizer_holds_the_parameters_of_a_model_that_is_gone():
    """So that deleting the model frees nothing."""
    optimizer = torch.optim.SGD(nn.Linear(3, 4).parameters())

    assert split({"optimizer": optimizer}, "optimizer") == {"parameters": 64}


def test_what_only_a_graph_holds_is_the_graphs():
    """`exp` saves its result, which no variable names, and each product the eight bytes of its number."""
    x = torch.zeros(100, requires_grad=True)
    names = {"x": x, "y": (x * 2).exp() * 3}

    assert split(names, "y") == {"autograd graph": 416, "other": 400}
    names["y"].sum().backward(inputs=[x])
    assert split(names, "y") == {"other": 400}


def test_a_graph_keeps_leaves_and_what_a_function_put_on_its_context():
    """Both live as long as the loss does."""

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = torch.zeros(50)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    y = Twice.apply(torch.zeros(100, requires_grad=True))

    assert split({"y": y}, "y") == {"autograd graph": 600, "other": 400}


@pytest.mark.filterwarnings("ignore:Sparse")
def test_tensors_made_of_tensors():
    """A sparse tensor is its indices and values, a nested one its rows; a fake or meta tensor is nothing."""
    sparse = torch.sparse_coo_tensor([[0, 1, 2]], torch.ones(3), (5,))
    rows = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged)

    compressed = torch.sparse_csr_tensor([0, 1, 2, 3], [0, 1, 2], torch.ones(3))

    assert holders({"sparse": sparse}) == {"sparse": 24 + 12}
    assert holders({"compressed": compressed}) == {"compressed": 32 + 24 + 12}
    assert holders({"rows": rows})["rows"] == 20 + 24
    assert holders({"nothing": torch.zeros(9, device="meta"), "empty": torch.zeros(0)}) == {}


def test_the_sum_over_names_is_that_of_the_storages_alive():
    """Of a notebook with everything in it, to the byte, against torch's own storages."""
    model = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    data = np.arange(400, dtype=np.float32).reshape(20, 20)
    batch = torch.from_numpy(data)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    output = model(batch)
    names = {"model": model, "optimizer": optimizer, "data": data, "batch": batch, "loss": loss, "output": output}
    names |= {"history": [output.detach()[0], loss.detach()], "state": model.state_dict(), "rows": batch.unbind()}
    alive = {}
    tensors = [batch, loss, output, *model.parameters(), *(p.grad for p in model.parameters())]
    tensors += [value for state in optimizer.state.values() for value in state.values()]
    # The two activations that the second graph saved: the input is `batch`, the output of ReLU is nobody's.
    for tensor in tensors:
        alive[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()

    assert sum(holders(names).values()) == sum(alive.values()) + 20 * 20 * 4


def test_outputs_hold_what_nothing_else_does():
    """A result that a variable names too is the variable's."""
    x = torch.zeros(10)
    report = torchmagic.memory({"x": x, "_oh": {2: x, 3: [torch.zeros(5)]}, "_": torch.zeros(7)})

    assert [(h.path, h.bytes, h.note) for h in report.holders] == [
        ("x", 40, ""),
        ("_", 28, "the last result, or the `_` of a loop"),
        ("Out[3]", 20, "shown in cell 3"),
    ]


def test_the_frames_of_the_last_exception_are_holders(monkeypatch):
    """Also those of the exception that was handled when it came, each storage in the innermost frame."""

    def load():
        rows = torch.zeros(30)
        raise KeyError("rows")

    def train(x):
        batch = torch.zeros(20)
        try:
            load()
        except KeyError:
            raise ValueError("no rows") from None

    x = torch.zeros(10)
    try:
        train(x)
    except ValueError as caught:
        monkeypatch.setattr(sys, "last_value", caught, raising=False)
    monkeypatch.delattr(sys, "last_exc", raising=False)

    assert holders({"x": x}) == {"frame load": 120, "frame train": 80, "x": 40}


def test_an_opened_model_is_a_tree_of_its_layers():
    """Down to the layers, and not to their weights."""
    model = nn.Sequential(nn.Linear(10, 5), nn.Sequential(nn.Linear(5, 1, bias=False), nn.ReLU()))
    (tree,) = torchmagic.memory({"model": model}, paths=["model"]).opened

    assert (tree.path, tree.bytes, dict(tree.split)) == ("model", 240, {"parameters": 240})
    assert [(part.path, part.bytes) for part in tree.inside] == [("model[0]", 220), ("model[1]", 20)]
    assert [(part.path, part.bytes) for part in tree.inside[1].inside] == [("model[1][0]", 20)]


def test_an_opened_optimizer_says_what_is_counted_elsewhere():
    """Its parameters are the model's; one row stands for the first moments of all of them."""
    model = nn.Linear(10, 5)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.zeros(1, 10)).sum().backward()
    optimizer.step()
    report = torchmagic.memory({"model": model, "optimizer": optimizer}, paths=["optimizer", "model.weight"])
    tree, weight = report.opened

    assert (tree.bytes, dict(tree.elsewhere)) == (888, {"model": 440})
    assert [(part.path, part.bytes) for part in tree.inside] == [
        ("optimizer.param_groups", 440),
        ("optimizer.state[...]['exp_avg']", 220),
        ("optimizer.state[...]['exp_avg_sq']", 220),
        ("optimizer.state[...]['step']", 8),
    ]
    assert (weight.path, weight.bytes, dict(weight.elsewhere)) == ("model.weight", 400, {})


def test_a_path_that_leads_nowhere():
    """Is no empty holder."""
    with pytest.raises(KeyError) as raised:
        torchmagic.memory({"x": torch.zeros(1)}, paths=["x.real.nothing"])

    assert raised.value.args == ("x.real.nothing",)


def test_the_walk_survives_what_holds_itself_and_what_is_deep():
    """A list in itself, a module that holds its parent in a list, a chain of a thousand lists."""
    loop = [torch.zeros(1)]
    loop.append(loop)
    child = nn.Linear(1, 1, bias=False)
    child.parents = [nn.Sequential(child)]
    deep = torch.zeros(2)
    for _ in range(5000):
        deep = [deep]

    assert holders({"loop": loop, "child": child, "deep": deep}) == {"deep": 8, "child": 4, "loop": 4}


def test_looking_keeps_nothing_alive_and_changes_nothing():
    """When a variable goes after a look, its memory goes with it."""
    model = nn.Linear(10, 10)
    names = {"model": model, "loss": model(torch.zeros(2, 10)).sum()}
    tensors = [names["loss"], *model.parameters()]
    before = global_state(), [fingerprint(tensor) for tensor in tensors]
    report = torchmagic.memory(names, paths=["model"])
    after = global_state(), [fingerprint(tensor) for tensor in tensors]
    gone = torch.zeros(3)
    storage = gone.untyped_storage()
    references = sys.getrefcount(storage), sys.getrefcount(gone)
    kept = torchmagic.memory({"gone": gone})

    assert after == before
    assert (sys.getrefcount(storage), sys.getrefcount(gone)) == references
    assert (len(report.holders), len(kept.holders)) == (2, 1)


def test_whose_the_bytes_of_an_opened_holder_are_is_told_once():
    """Not again at each of its parts."""
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 3)))
    report = torchmagic.memory({"net": net, "trainers": [{"model": net}]}, paths=["trainers"])

    assert " ".join(str(report).split()).count("is counted under `net`") == 1
