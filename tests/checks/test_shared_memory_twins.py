"""shared-memory: averages over the parameters themselves, modules used as two, and bytes that files fill."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

GAN = """
gen = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
def train():
    opt.zero_grad()
    gen(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
"""

MISTAKES = {
    "ema dict(named_parameters)": (
        (
            GAN,
            """
class EMA:
    def __init__(self, net, decay=0.9):
        self.decay = decay
        self.shadow = dict(net.named_parameters())

    @torch.no_grad()
    def update(self, net):
        for name, p in net.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p, alpha=1 - self.decay)

ema = EMA(gen)
for it in range(3):
    train()
    ema.update(gen)
""",
        ),
        [("ema.shadow", 4)],
    ),
    "ema list zip lerp": (
        (
            GAN,
            """
averaged = list(gen.parameters())
for it in range(3):
    train()
    with torch.no_grad():
        for a, p in zip(averaged, gen.parameters()):
            a.lerp_(p, 0.1)
""",
        ),
        [("averaged", 1)],
    ),
    "ema comprehension, copy_": (
        (
            GAN,
            """
slow = {n: p for n, p in gen.named_parameters()}
for it in range(3):
    train()
    with torch.no_grad():
        for n, p in gen.named_parameters():
            slow[n].copy_(0.9 * slow[n] + 0.1 * p)
""",
        ),
        [("slow", 1)],
    ),
    "ema data": (
        (
            GAN,
            """
class Average:
    def __init__(self, net):
        self.weights = [p for p in net.parameters()]
    def __call__(self, net):
        with torch.no_grad():
            for w, p in zip(self.weights, net.parameters()):
                w.data = w.data * 0.9 + p.data * 0.1
                w.mul_(0.9).add_(p, alpha=0.1)
average = Average(gen)
for it in range(3):
    train()
    average(gen)
""",
        ),
        [("average.weights", 3)],
    ),
    "readinto bytearray": (
        (
            """
import io

def read_chunks(stream, samples):
    buf = bytearray(2 * samples)
    while stream.readinto(buf) == len(buf):
        yield torch.frombuffer(buf, dtype=torch.int16)

pcm = io.BytesIO(np.arange(12, dtype=np.int16).tobytes())
chunks = list(read_chunks(pcm, 4))
peaks = [int(c.max()) for c in chunks]
""",
        ),
        [("chunks", 9)],
    ),
    "readinto loop at top": (
        (
            """
import io
pcm = io.BytesIO(np.arange(12, dtype=np.int16).tobytes())
buf, chunks = bytearray(8), []
while pcm.readinto(buf):
    chunks.append(torch.frombuffer(buf, dtype=torch.int16))
""",
        ),
        [("chunks", 5)],
    ),
    "readinto array from_numpy": (
        (
            """
import io
def frames(stream):
    frame = np.empty(4, dtype=np.int16)
    while True:
        if not stream.readinto(frame):
            return
        yield torch.from_numpy(frame)
pcm = io.BytesIO(np.arange(12, dtype=np.int16).tobytes())
clips = [f for f in frames(pcm)]
""",
        ),
        [("clips", 9)],
    ),
    "slice of a bytearray": (
        (
            """
raw = np.arange(12, dtype=np.int16).tobytes()
buf, rows = bytearray(8), {}
for k in range(3):
    buf[:] = raw[8 * k : 8 * k + 8]
    rows[k] = torch.frombuffer(buf, dtype=torch.int16)
""",
        ),
        [("rows", 5)],
    ),
    "twin chained": (
        (
            """
q1 = q2 = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
opt1 = torch.optim.SGD(q1.parameters(), lr=0.05)
opt2 = torch.optim.SGD(q2.parameters(), lr=0.05)
states, goal = torch.randn(6, 5), torch.randn(6, 1)
for critic, optimizer in ((q1, opt1), (q2, opt2)):
    optimizer.zero_grad()
    F.mse_loss(critic(states), goal).backward()
    optimizer.step()
with torch.no_grad():
    gap = (q1(states) - q2(states)).abs().max().item()
""",
        ),
        [("q2", 1)],
    ),
    "twin one optimizer, minimum": (
        (
            """
critic_a = nn.Linear(5, 1)
critic_b = critic_a
opt = torch.optim.SGD([*critic_a.parameters()], lr=0.05)
states, goal = torch.randn(6, 5), torch.randn(6, 1)
for it in range(2):
    low = torch.min(critic_a(states), critic_b(states))
    opt.zero_grad()
    F.mse_loss(low, goal).backward()
    opt.step()
""",
        ),
        [("critic_b", 2)],
    ),
    "twin in a module": (
        (
            """
class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1 = self.q2 = nn.Linear(5, 1)
    def forward(self, s):
        return torch.minimum(self.q1(s), self.q2(s))
twin = Twin()
opt = torch.optim.SGD(twin.parameters(), lr=0.05)
for it in range(2):
    opt.zero_grad()
    twin(torch.randn(6, 5)).mean().backward()
    opt.step()
""",
        ),
        [("twin.q2", 4)],
    ),
    "twins of an ensemble, by a repeated tuple": (
        (
            """
left, right = (nn.Linear(5, 1),) * 2
opt_l, opt_r = torch.optim.SGD(left.parameters(), lr=0.1), torch.optim.SGD(right.parameters(), lr=0.1)
x, y = torch.randn(6, 5), torch.randn(6, 1)
for net, opt in zip((left, right), (opt_l, opt_r)):
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
mean = (left(x) + right(x)).detach() / 2
""",
        ),
        [("right", 1)],
    ),
}

CORRECT = {
    "own sgd": (
        GAN,
        """
class SGD:
    def __init__(self, net, lr=0.1):
        self.lr, self.params = lr, dict(net.named_parameters())
    @torch.no_grad()
    def step(self, net):
        for name, p in net.named_parameters():
            self.params[name].sub_(p.grad, alpha=self.lr)
sgd = SGD(gen)
for it in range(3):
    gen.zero_grad()
    gen(torch.randn(8, 4)).pow(2).mean().backward()
    sgd.step(gen)
""",
    ),
    "ema clone": (
        GAN,
        """
class EMA:
    def __init__(self, net, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in net.named_parameters()}

    @torch.no_grad()
    def update(self, net):
        for name, p in net.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p, alpha=1 - self.decay)

ema = EMA(gen)
for it in range(3):
    train()
    ema.update(gen)
""",
    ),
    "params list clipped": (
        GAN,
        """
params = list(gen.parameters())
for it in range(3):
    train()
    with torch.no_grad():
        for p in params:
            p.clamp_(-1, 1)
print(sum(p.numel() for p in params))
""",
    ),
    "weight decay by hand over a list": (
        GAN,
        """
params = [p for p in gen.parameters() if p.dim() > 1]
for it in range(3):
    train()
    with torch.no_grad():
        for p in params:
            p.sub_(0.01 * p)
""",
    ),
    "copy from a teacher into a list": (
        GAN,
        """
import copy
teacher = copy.deepcopy(gen)
mine = list(gen.parameters())
for it in range(2):
    train()
with torch.no_grad():
    for m, t in zip(mine, teacher.parameters()):
        m.copy_(t)
""",
    ),
    "a buffer for each chunk": (
        """
import io
def read_chunks(stream, samples):
    while True:
        buf = bytearray(2 * samples)
        if stream.readinto(buf) < len(buf):
            return
        yield torch.frombuffer(buf, dtype=torch.int16)
pcm = io.BytesIO(np.arange(12, dtype=np.int16).tobytes())
chunks = list(read_chunks(pcm, 4))
""",
    ),
    "cloned chunks": (
        """
import io
pcm = io.BytesIO(np.arange(12, dtype=np.int16).tobytes())
buf, chunks = bytearray(8), []
while pcm.readinto(buf):
    chunks.append(torch.frombuffer(buf, dtype=torch.int16).clone())
last = torch.frombuffer(buf, dtype=torch.int16)
""",
    ),
    "one buffer, read once per pass": (
        """
import io
pcm = io.BytesIO(np.arange(12, dtype=np.int16).tobytes())
buf = bytearray(8)
peaks = []
chunk = torch.frombuffer(buf, dtype=torch.int16)
while pcm.readinto(buf):
    peaks.append(int(chunk.max()))
""",
    ),
    "short name": (
        """
model = net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(6, 5)
before = net(x).detach()
for it in range(2):
    opt.zero_grad(); model(x).mean().backward(); opt.step()
after = model(x).detach()
""",
    ),
    "siamese towers": (
        """
class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = self.right = nn.Linear(5, 3)
    def forward(self, a, b):
        return (self.left(a) - self.right(b)).norm(dim=1)
net = Siamese()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for it in range(2):
    opt.zero_grad(); net(torch.randn(6, 5), torch.randn(6, 5)).mean().backward(); opt.step()
""",
    ),
    "two optimizers one after the other": (
        """
net = nn.Linear(5, 1)
warm = torch.optim.Adam(net.parameters(), lr=0.01)
fine = torch.optim.SGD(net.parameters(), lr=0.01)
for opt in (warm, fine):
    opt.zero_grad(); net(torch.randn(6, 5)).mean().backward(); opt.step()
""",
    ),
    "twins made apart": (
        """
q1, q2 = nn.Linear(5, 1), nn.Linear(5, 1)
opt1 = torch.optim.SGD(q1.parameters(), lr=0.05)
opt2 = torch.optim.SGD(q2.parameters(), lr=0.05)
s = torch.randn(6, 5)
for q, o in ((q1, opt1), (q2, opt2)):
    o.zero_grad(); q(s).mean().backward(); o.step()
gap = (q1(s) - q2(s)).abs().max().item()
""",
    ),
    "is the same, asserted": (
        """
net = nn.Linear(5, 1)
wrapped = net
opt = torch.optim.SGD(net.parameters(), lr=0.05)
opt.zero_grad(); net(torch.randn(6, 5)).mean().backward(); opt.step()
assert wrapped is net
x = torch.randn(2, 5)
assert torch.equal(wrapped(x), net(x))
""",
    ),
}


@pytest.mark.parametrize(("cells", "found"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found(cells, found):
    """The rule names what should have had memory of its own, and the line that gave it none."""
    assert flags(look(COMMON, *(cell.removeprefix("\n") for cell in cells)), "shared-memory") == found


@pytest.mark.parametrize("cells", CORRECT.values(), ids=CORRECT)
def test_correct_code_is_left_alone(cells):
    """Steps of one's own making, short names, shared towers and buffers that are read at once are no finding."""
    assert flags(look(COMMON, *(cell.removeprefix("\n") for cell in cells)), "shared-memory") == []
