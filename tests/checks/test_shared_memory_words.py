"""shared-memory: a report says who wrote, by which statement, and what the other side contains now."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look

SETUP = (
    COMMON
    + """
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=1.0)
def train():
    model(torch.ones(1, 2)).sum().backward()
    opt.step()
def halve(v):
    v *= 0.5
with torch.no_grad():
    model.weight.fill_(3.0)
"""
)

SAID = {
    "the array was written": (
        "a = np.arange(3.0)\nt = torch.from_numpy(a)\na += 1\nprint(t)\n",
        "`t`: the tensor and the array `a` are the same memory; line 3 (`a += 1`) writes it, "
        "and `t` now is [1.0, 2.0, 3.0]; make one a copy",
    ),
    "the tensor was written": (
        "a = np.arange(4)\nt = torch.from_numpy(a)\nt.mul_(2)\nprint(a)\n",
        "`t`: the tensor and the array `a` are the same memory; line 3 (`t.mul_(2)`) writes it, "
        "and `a` now starts [0, 2, 4, ...]; make one a copy",
    ),
    "a place that the text tells": (
        "mask = np.zeros(5, dtype=bool)\nt = torch.from_numpy(mask | True)\nm = t.numpy()\nm[-1] = False\nprint(t)\n",
        "`m`: the array and the tensor `t` are the same memory; line 4 (`m[-1] = False`) writes it, "
        "and `t[-1]` now is False; make one a copy",
    ),
    "rows and columns": (
        "image = torch.zeros(2, 4, 4)\norig = image\nimage[1, 2:] = 1\nprint((orig - image).sum())\n",
        "`orig`: another name for `image`, so line 3 (`image[1, 2:] = 1`) writes both, "
        "and `orig[1, 2:]` now starts [[1.0, 1.0, 1.0, ...], [1.0, 1.0, 1.0, ...]]; keep a copy",
    ),
    "complex numbers": (
        "a = np.array([1 + 2j, -3j])\nt = torch.from_numpy(a)\na += 1\nprint(t)\n",
        "`t`: the tensor and the array `a` are the same memory; line 3 (`a += 1`) writes it, "
        "and `t` now is [2.0+2.0j, 1.0-3.0j]; make one a copy",
    ),
    "numbers too small for four digits": (
        "w = torch.full((3, 2), 2e-7)\nbackup = w\nw.div_(2)\nprint(backup)\n",
        "`backup`: another name for `w`, so line 3 (`w.div_(2)`) writes both, "
        "and `backup` now starts [[1e-07, 1e-07], ...]; keep a copy",
    ),
    "through `.data`": (
        "w = torch.zeros(2, requires_grad=True)\nold = w.detach()\nw.data -= 0.5\nprint(old - w)\n",
        "`old`: another name for `w`, so line 3 (`w.data -= 0.5`) writes both, "
        "and `old` now is [-0.5, -0.5]; keep a copy",
    ),
    "in a function of an earlier cell": (
        "x = torch.ones(2)\norig = x\nhalve(x)\nprint(orig)\n",
        "`orig`: another name for `x`, so line 3 (`v *= 0.5` in `halve`) writes both, "
        "and `orig` now is [0.5, 0.5]; keep a copy",
    ),
    "a function that returns what it edits": (
        "def centred(v):\n    v -= v.mean()\n    return v\nx = torch.tensor([1.0, 3.0])\nz = centred(x)\nprint(x, z)\n",
        "`z`: the same memory as `x`, which line 2 (`v -= v.mean()` in `centred`) edits in place, "
        "and `x` now is [-1.0, 1.0]; edit a copy",
    ),
    "a sample that is edited when it is read": (
        "class Samples:\n    def __init__(self):\n        self.x = torch.ones(2, 2)\n    def __getitem__(self, i):\n"
        "        row = self.x[i]\n        row *= 2\n        return row\nsamples = Samples()\nfirst = samples[0]\n",
        "`first`: the same memory as `samples.x`, which line 6 (`row *= 2` in `__getitem__`) edits in place each time "
        "it is read, and `samples.x` now is [[2.0, 2.0], [1.0, 1.0]]; edit a copy",
    ),
    "an optimizer's step": (
        "best = model.state_dict()\ntrain()\nmodel.load_state_dict(best)\n",
        "`best`: 2 of its entries are the memory of `model`, which line 2 (`opt.step()` in `train`) goes on changing; "
        "`best['weight']` now is [[2.0, 2.0]]; keep a copy",
    ),
    "an optimizer's step, and an array": (
        "before = model.weight.detach().numpy()\ntrain()\nprint(before - model.weight.detach().numpy())\n",
        "`before`: it is the memory of `model.weight`, which line 2 (`opt.step()` in `train`) goes on changing; "
        "`before` now is [[2.0, 2.0]]; keep a copy",
    ),
    "a list of one memory": (
        "pos = np.zeros(2)\npath = []\nfor step in range(3):\n    pos += 1\n    path.append(pos)\n",
        "`path`: 3 entries are the same memory, which line 4 (`pos += 1`) changes in place, "
        "and each now is [3.0, 3.0]; store a copy",
    ),
    "a repeated row": (
        "rows = [torch.zeros(2)] * 4\nrows[0][1] = 5\nprint(rows)\n",
        "`rows`: its 4 entries are one tensor, so line 2 (`rows[0][1] = 5`) writes all of them, "
        "and each now is [0.0, 5.0]; make a tensor for each",
    ),
    "a shallow copy": (
        "a = {'w': torch.zeros(2)}\nb = a.copy()\nb['w'] += 1\nprint(a)\n",
        "`b['w']`: the same tensor as `a['w']`, which the copy did not copy; line 3 (`b['w'] += 1`) writes both, "
        "and `a['w']` now is [1.0, 1.0]; copy the tensor too",
    ),
    "a statement that is long": (
        "w = torch.zeros(2)\nbackup = w\nw += torch.tensor([1.0, 2.0]) * torch.tensor([3.0, 4.0])\nprint(backup)\n",
        "`backup`: another name for `w`, so line 3 (`w += torch.tensor([1.0, 2.0]) * torch...`) writes both, "
        "and `backup` now is [3.0, 8.0]; keep a copy",
    ),
}


@pytest.mark.parametrize(("cell", "message"), SAID.values(), ids=SAID)
def test_who_wrote_and_what_the_other_side_contains(cell, message):
    """The statement by which the memory was written, and the first values of the holder it does not name."""
    assert [f.message for f in look(SETUP, cell).findings] == [message]


def test_the_copy_belongs_into_the_cell_that_made_the_second_holder():
    """Across cells the line is that of the write, and the advice names the cell to change."""
    report = look(SETUP, "a = np.zeros(2)\nt = torch.from_numpy(a)\n", "a[0] = 9\nprint(t)\n")

    assert [(f.line, f.message) for f in report.findings] == [
        (
            1,
            "`t`: the tensor and the array `a` are the same memory; line 1 (`a[0] = 9`) writes it, "
            "and `t[0]` now is 9.0; make one a copy in the cell that makes `t`",
        )
    ]


def test_a_state_dict_of_sixty_aliases_is_one_finding():
    """All entries are told of at once, under the model they belong to."""
    cell = """
net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(30)])
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
best = net.state_dict()
for _ in range(3):
    sgd.zero_grad()
    net(torch.ones(2, 4)).pow(2).mean().backward()
    sgd.step()
net.load_state_dict(best)
"""
    (finding,) = look(SETUP, cell).findings

    assert (finding.subject, finding.line, finding.evidence["entries"]) == ("best", 4, 60)
    assert finding.message.startswith(
        "`best`: 60 of its entries are the memory of `net`, which line 8 (`sgd.step()`) goes on changing; "
    )


def test_values_that_python_cannot_show_are_left_out():
    """What has no numbers of its own is told of without them."""
    cell = "pairs = np.zeros(2, dtype=[('x', 'f4'), ('y', 'f4')])\nbackup = pairs\npairs['x'] += 1\nprint(backup)\n"

    assert [f.message for f in look(SETUP, cell).findings] == [
        "`backup`: another name for `pairs`, so line 3 (`pairs['x'] += 1`) writes both; keep a copy"
    ]
