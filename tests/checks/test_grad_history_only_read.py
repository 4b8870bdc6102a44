"""grad-history: results that are only looked at, whichever mode a model was left in, and records of several tensors."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

MISTAKES = {
    "decoder cache, embed not in eval": (
        (
            """
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, past=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k = torch.cat([past["k"], k])
            v = torch.cat([past["v"], v])
        mixed = (q @ k.T / k.size(-1) ** 0.5).softmax(-1) @ v
        return mixed, {"k": k, "v": v}

attn, embed = Attention(6), nn.Embedding(11, 6)
attn.eval()

tokens, cache = [3], None
while len(tokens) < 20:
    mixed, cache = attn(embed(torch.tensor(tokens[-1:])), cache)
    tokens.append(int((mixed @ embed.weight.T).argmax()))
""",
        ),
        [("cache", 19)],
    ),
    "decoder cache, all eval": (
        (
            """
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, past=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k = torch.cat([past["k"], k])
            v = torch.cat([past["v"], v])
        mixed = (q @ k.T / k.size(-1) ** 0.5).softmax(-1) @ v
        return mixed, {"k": k, "v": v}

attn, embed = Attention(6), nn.Embedding(11, 6)
attn.eval()
embed.eval()
tokens, cache = [3], None
while len(tokens) < 20:
    mixed, cache = attn(embed(torch.tensor(tokens[-1:])), cache)
    tokens.append(int((mixed @ embed.weight.T).argmax()))
""",
        ),
        [("cache", 19)],
    ),
    "eval outputs, plain head in training mode": (
        (
            """
body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))
head = nn.Linear(4, 2)
body.eval()
outs = []
for _ in range(4):
    outs.append(head(body(torch.randn(3, 4))))
acc = torch.cat(outs).argmax(1).float().mean().item()
""",
        ),
        [("outs", 6)],
    ),
    "a state of a cell, embed not in eval": (
        (
            """
rnn, embed = nn.GRUCell(6, 6), nn.Embedding(11, 6)
rnn.eval()
tokens, h = [3], None
while len(tokens) < 12:
    h = rnn(embed(torch.tensor(tokens[-1:])), h)
    tokens.append(int((h @ embed.weight.T).argmax()))
""",
        ),
        [("h", 5)],
    ),
    "monte carlo forecasts": (
        (
            """
demand = nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 1))
regions = {r: torch.randn(3, 7) for r in ('north', 'south', 'coast')}
""",
            """
from typing import NamedTuple

class Forecast(NamedTuple):
    mean: torch.Tensor
    std: torch.Tensor

def mc_predict(net, x, passes=20):
    net.train()
    draws = torch.stack([net(x) for _ in range(passes)])
    return Forecast(draws.mean(0), draws.std(0))

forecasts = {region: mc_predict(demand, history) for region, history in regions.items()}
widest = max(forecasts, key=lambda r: forecasts[r].std.max().item())
""",
        ),
        [("forecasts", 12)],
    ),
    "monte carlo list of pairs": (
        (
            """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
""",
            """
net.train()
spread = []
for x in torch.randn(5, 2, 4):
    draws = torch.stack([net(x) for _ in range(10)])
    spread.append((draws.mean(0), draws.var(0)))
print(max(v.max().item() for _, v in spread))
""",
        ),
        [("spread", 5)],
    ),
    "eval pairs": (
        (
            """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)).eval()
table = {}
for k, x in enumerate(torch.randn(5, 2, 4)):
    h = net(x)
    table[k] = (h.mean(), h.std())
best = min(table, key=lambda k: table[k][1].item())
""",
        ),
        [("table", 5)],
    ),
}

CORRECT = {
    "frozen body in eval, head with dropout in training": (
        """
body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))
head = nn.Sequential(nn.Dropout(0.1), nn.Linear(4, 2))
body.eval()
outs = []
for _ in range(4):
    outs.append(head(body(torch.randn(3, 4))))
""",
    ),
    "a decoder's cache under no_grad": (
        """
rnn, embed = nn.GRUCell(6, 6), nn.Embedding(11, 6)
rnn.eval()
tokens, h = [3], None
with torch.no_grad():
    while len(tokens) < 8:
        h = rnn(embed(torch.tensor(tokens[-1:])), h)
        tokens.append(int((h @ embed.weight.T).argmax()))
""",
    ),
    "losses collected for a later cell": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
        """
losses = [net(x).pow(2).mean() for x in torch.randn(5, 2, 4)]
print(losses[0].item())
""",
    ),
    "outputs with pairs, differentiated": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
pairs = []
for x in torch.randn(5, 2, 4):
    out = net(x)
    pairs.append((out.mean(), out.var()))
print(pairs[0][0].item())
loss = sum(m + v for m, v in pairs)
loss.backward()
""",
    ),
    "monte carlo under no_grad": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
net.train()
spread = []
with torch.no_grad():
    for x in torch.randn(5, 2, 4):
        draws = torch.stack([net(x) for _ in range(10)])
        spread.append((draws.mean(0), draws.var(0)))
""",
    ),
    "numbers that are read while the container is filled are not its own": (
        """
clips = [torch.randn(n, 4) for n in (3, 5, 2)]
lengths = torch.tensor([len(c) for c in clips])
padded = nn.utils.rnn.pad_sequence(clips, batch_first=True)
encoder = nn.GRU(4, 6, batch_first=True)
states, last = encoder(padded)
ends = [states[i, n - 1] for i, n in enumerate(lengths.tolist())]
summary = torch.stack(ends)
""",
    ),
    "outputs of an untrained model, one of them looked at": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
outs = []
for x in torch.randn(5, 2, 4):
    outs.append(net(x))
print(outs[0].max().item())
logits = torch.cat(outs)
""",
    ),
    "features drawn in a picture, the model not trained yet": (
        """
conv = nn.Conv2d(1, 4, 3)
maps = [conv(image) for image in torch.rand(3, 1, 1, 8, 8)]
pictures = [m[0, 0].detach().numpy() for m in maps]
""",
    ),
    "attention over the parts of a bag": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
scores = []
for bag in torch.randn(4, 5, 4):
    scores.append(torch.stack([net(part) for part in bag]))
print([s.max().item() for s in scores])
""",
    ),
    "states of a sequence, looked at": (
        """
cell, drop = nn.GRUCell(4, 6), nn.Dropout(0.2)
finals = []
for sequence in torch.randn(3, 5, 2, 4):
    h, states = torch.zeros(2, 6), []
    for x in sequence:
        h = drop(cell(x, h))
        states.append(h)
    finals.append(torch.stack(states))
print(max(f.norm().item() for f in finals))
""",
    ),
    "a body with its statistics held, a head to be trained": (
        """
body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
head = nn.Linear(4, 2)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
""",
        """
body.eval()
losses = []
for x in torch.randn(4, 3, 4):
    losses.append(head(body(x)).pow(2).mean())
print(losses[-1].item())
""",
    ),
    "a body in evaluation mode, a head that gets its optimizer later": (
        """
body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
head = nn.Linear(4, 2)
losses = []
for x in torch.randn(4, 3, 4):
    losses.append(head(body(x)).pow(2).mean())
objective = torch.stack(losses).mean()
""",
    ),
    "several draws that go on with their gradients": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
draws = []
for x in torch.randn(3, 2, 4):
    draws.append(torch.stack([net(x) for _ in range(5)]).mean(0))
print(draws[0].max().item())
objective = torch.stack(draws).mean()
""",
    ),
    "losses of a batch, no optimizer yet": (
        """
net = nn.Linear(4, 1)
losses = {}
for name in ("a", "b", "c"):
    losses[name] = net(torch.randn(2, 4)).pow(2).mean()
""",
    ),
}


@pytest.mark.parametrize(("cells", "found"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found(cells, found):
    """The rule names the container or the state, and the line that fills it."""
    assert flags(look(COMMON, *(cell.removeprefix("\n") for cell in cells)), "grad-history") == found


@pytest.mark.parametrize("cells", CORRECT.values(), ids=CORRECT)
def test_correct_code_is_left_alone(cells):
    """Results that are trained on, or made without recording, are no finding."""
    report = look(COMMON, *(cell.removeprefix("\n") for cell in cells))

    assert flags(report, "grad-history") == []
