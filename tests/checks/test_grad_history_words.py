"""grad-history: a report says how much is held, by how much each step adds to it, and says it once."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look

SETUP = (
    COMMON
    + """
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(4)]
"""
)

STEP = """
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
"""
LOOP = "for x, y in data:" + STEP

SAID = {
    "a list of five hundred losses": (
        "losses = []\nfor step in range(500):\n    x, y = data[step % 4]" + STEP + "    losses.append(loss)\n",
        [
            "`losses`: 500 tensors keep the autograd history of their steps (3,504 graph nodes that `backward()` left, "
            "7 more each step); keep the number: `.item()`"
        ],
    ),
    "a running sum": (
        "total = 0.0\n" + LOOP + "    total += loss\n",
        [
            "`total` keeps the autograd history of 4 steps (36 graph nodes that `backward()` left, 8 more each step); "
            "keep the number: `.item()`"
        ],
    ),
    "a running mean, whose first step is shorter": (
        "mean = 0.0\n" + LOOP + "    mean = 0.9 * mean + 0.1 * loss\n",
        [
            "`mean` keeps the autograd history of 4 steps (43 graph nodes that `backward()` left, about 10 more each "
            "step); keep the number: `.item()`"
        ],
    ),
    "predictions of an evaluation": (
        "model.eval()\npreds = []\nfor x, _ in data:\n    preds.append(model(x))\n",
        [
            "`preds`: 4 tensors keep the autograd history of their steps (24 graph nodes hold 832 bytes of activations "
            "that no `backward()` freed, 208 bytes more each step); put the loop under `torch.no_grad()`"
        ],
    ),
    "steps of different size": (
        "model.eval()\npreds = []\nfor n in (1, 2, 4):\n    preds.append(model(torch.ones(n, 5)))\n",
        [
            "`preds`: 3 tensors keep the autograd history of their steps (19 graph nodes hold 364 bytes of activations "
            "that no `backward()` freed, about 156 bytes more each step); put the loop under `torch.no_grad()`"
        ],
    ),
    "a deque that is full no longer grows": (
        "from collections import deque\nlosses = deque(maxlen=2)\n" + LOOP + "    losses.append(loss)\n",
        [
            "`losses`: 2 tensors keep the autograd history of their steps (18 graph nodes that `backward()` left); "
            "keep the number: `.item()`"
        ],
    ),
    "the best loss is one step's": (
        "best = None\n" + LOOP + "    if best is None or loss < best:\n        best = loss\n",
        [
            "`best` keeps the autograd history of the step it was taken from (11 graph nodes that `backward()` left); "
            "keep it without history: `.detach()`"
        ],
    ),
    "a list of dicts is one finding": (
        "log = []\n" + LOOP + "    log.append({'loss': loss, 'twice': 2 * loss})\n",
        [
            "`log`: 8 tensors keep the autograd history of 4 steps (36 graph nodes that `backward()` left, "
            "8 more each step); keep the number: `.item()`"
        ],
    ),
    "a dict of lists that one line fills is one finding": (
        "from collections import defaultdict\nlog = defaultdict(list)\n"
        + LOOP
        + "    for name, value in {'a': loss, 'b': 2 * loss, 'c': 3 * loss, 'd': 4 * loss}.items():\n"
        "        log[name].append(value)\n",
        [
            "`log['a']`: 4 tensors keep the autograd history of their steps (32 graph nodes that `backward()` left, "
            "7 more each step); so do `log['b']` and 2 more; keep the number: `.item()`"
        ],
    ),
    "lists that an outer loop makes anew": (
        "log = {}\nfor epoch in range(2):\n    log[epoch] = {'train': []}\n    for x, y in data:"
        + STEP.replace("\n", "\n    ")
        + "    log[epoch]['train'].append(loss)\n",
        [
            "`log[0]['train']`: 4 tensors keep the autograd history of their steps (32 graph nodes that `backward()` "
            "left, 7 more each step); so does `log[1]['train']`; keep the number: `.item()`"
        ],
    ),
    "meters of one class": (
        "class Meter:\n    def __init__(self):\n        self.sum = 0.0\n    def update(self, value):\n"
        "        self.sum += value\nmeters = {'loss': Meter(), 'twice': Meter()}\n"
        + LOOP
        + "    meters['loss'].update(loss)\n    meters['twice'].update(2 * loss)\n",
        [
            "`meters['loss'].sum` keeps the autograd history of 4 steps (36 graph nodes that `backward()` left, "
            "8 more each step); so does `meters['twice'].sum`; keep the number: `.item()`"
        ],
    ),
    "two passes through one model are one step": (
        "total = 0.0\nfor x, y in data:\n    opt.zero_grad()\n    loss = (model(x) - model(x + 1)).pow(2).mean()\n"
        "    loss.backward()\n    opt.step()\n    total += loss\n",
        [
            "`total` keeps the autograd history of 4 steps (60 graph nodes that `backward()` left, 14 more each step); "
            "keep the number: `.item()`"
        ],
    ),
}


@pytest.mark.parametrize(("cell", "messages"), SAID.values(), ids=SAID)
def test_how_much_is_held_and_by_how_much_it_grows(cell, messages):
    """One finding for what one statement keeps, with nodes or bytes in all and for each step."""
    assert [f.message for f in look(SETUP, cell).findings] == messages


def test_lists_that_hold_the_same_losses_are_told_of():
    """The second list holds the tensors of the first one, and needs the same repair."""
    (finding,) = look(SETUP, "a, b = [], []\n" + LOOP + "    a.append(loss)\n    b.append(loss)\n").findings

    assert (finding.subject, finding.others) == ("a", ("b",))


def test_a_checkpointed_graph_holds_at_least_what_can_be_seen():
    """What a hook packed is not opened, so that its bytes are not known."""
    cell = """
from torch.utils.checkpoint import checkpoint
model.eval()
preds = []
for x, _ in data:
    preds.append(checkpoint(model, x, use_reentrant=False).exp())
"""
    assert [f.message for f in look(SETUP, cell).findings] == [
        "`preds`: 4 tensors keep the autograd history of their steps (28 graph nodes hold at least 192 bytes of "
        "activations that no `backward()` freed, 48 bytes more each step); put the loop under `torch.no_grad()`"
    ]
