"""Recurrent networks: truncated backpropagation through time, sampling characters, and packed sequences."""

# %%
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(1)
text = "the quick brown fox jumps over the lazy dog. " * 20
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text])
len(data), len(chars)


# %%
class CharLSTM(nn.Module):
    def __init__(self, vocab, hidden=32, layers=2):
        super().__init__()
        self.hidden_size, self.num_layers = hidden, layers
        self.embed = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, hidden, layers, batch_first=True, dropout=0.1)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        out, state = self.lstm(self.embed(x), state)
        return self.head(out), state

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.num_layers, batch, self.hidden_size),
            weight.new_zeros(self.num_layers, batch, self.hidden_size),
        )


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


# %%
batch_size, bptt = 4, 16
steps = len(data) // batch_size
batches = data[: steps * batch_size].view(batch_size, -1)
model = CharLSTM(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
batches.shape

# %%
total_loss = 0.0
hidden = model.init_hidden(batch_size)
for start in range(0, steps - 1, bptt):
    length = min(bptt, steps - 1 - start)
    x, targets = batches[:, start : start + length], batches[:, start + 1 : start + 1 + length]
    hidden = repackage_hidden(hidden)
    optimizer.zero_grad()
    logits, hidden = model(x, hidden)
    loss = F.cross_entropy(logits.reshape(-1, len(chars)), targets.reshape(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    total_loss += loss.item()
print("perplexity", math.exp(total_loss / (steps // bptt + 1)))


# %%
@torch.no_grad()
def sample(model, prompt, length, temperature=0.8):
    model.eval()
    ids = torch.tensor([[stoi[c] for c in prompt]])
    logits, state = model(ids)
    out = list(prompt)
    for _ in range(length):
        probs = F.softmax(logits[0, -1] / temperature, dim=-1)
        nxt = torch.multinomial(probs, 1)
        out.append(itos[nxt.item()])
        logits, state = model(nxt.view(1, 1), state)
    model.train()
    return "".join(out)


sample(model, "the ", 30)


# %%
def top_k_filter(logits, k):
    values, _ = torch.topk(logits, k)
    return torch.where(logits < values[..., [-1]], torch.full_like(logits, -float("inf")), logits)


def nucleus_filter(logits, p=0.9):
    ordered, index = logits.sort(descending=True)
    remove = ordered.softmax(-1).cumsum(-1) > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    return logits.masked_fill(remove.scatter(-1, index, remove), float("-inf"))


with torch.no_grad():
    logits, _ = model(torch.tensor([[stoi["t"], stoi["h"]]]))
    filtered = top_k_filter(logits[:, -1], 3)
    probs = filtered.softmax(-1)
    nucleus = nucleus_filter(logits[0, -1])
probs.max(), nucleus.softmax(-1).sum()


# %%
# A vanilla RNN cell by hand, sentence by sentence.
class RNN(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.hidden_size = hidden
        self.i2h = nn.Linear(inputs + hidden, hidden)
        self.h2o = nn.Linear(hidden, outputs)

    def forward(self, x, h):
        h = torch.tanh(self.i2h(torch.cat((x, h), 1)))
        return self.h2o(h), h

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


names = {"anna": 0, "maria": 0, "peter": 1, "jonas": 1}
letters = sorted(set("".join(names)))
rnn = RNN(len(letters), 12, 2)


def to_tensor(name):
    out = torch.zeros(len(name), 1, len(letters))
    for i, c in enumerate(name):
        out[i][0][letters.index(c)] = 1
    return out


# %%
learning_rate = 0.05
all_losses, current_loss = [], 0
for it in range(20):
    name, category = list(names.items())[it % 4]
    hidden = rnn.initHidden()
    rnn.zero_grad()
    for step in to_tensor(name):
        output, hidden = rnn(step, hidden)
    loss = F.cross_entropy(output, torch.tensor([category]))
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    current_loss += loss.item()
    if (it + 1) % 5 == 0:
        all_losses.append(current_loss / 5)
        current_loss = 0
all_losses

# %%
# Loss summed over the steps of a sequence, then one backward.
decoder = RNN(len(letters), 12, len(letters))
opt = torch.optim.SGD(decoder.parameters(), lr=0.05)
for name in names:
    line = to_tensor(name)
    target = torch.tensor([letters.index(c) for c in name[1:]] + [letters.index(name[-1])])
    hidden = decoder.initHidden()
    opt.zero_grad()
    loss = torch.Tensor([0])
    for i in range(line.size(0)):
        output, hidden = decoder(line[i], hidden)
        loss += F.cross_entropy(output, target[i].unsqueeze(0))
    loss.backward()
    opt.step()
print(loss.item() / line.size(0))

# %%
sequences = [torch.randn(n, 5) for n in (7, 4, 2)]
lengths = torch.tensor([len(s) for s in sequences])
padded = pad_sequence(sequences, batch_first=True, padding_value=float("nan")).nan_to_num(0.0)
gru = nn.GRU(5, 8, batch_first=True, bidirectional=True)
packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
packed_out, h_n = gru(packed)
unpacked, out_lengths = pad_packed_sequence(packed_out, batch_first=True)
summary = torch.cat([h_n[0], h_n[1]], dim=1)
unpacked.shape, summary.shape, out_lengths

# %%
classifier = nn.Linear(16, 2)
params = list(gru.parameters()) + list(classifier.parameters())
opt = torch.optim.RMSprop(params, lr=1e-3)
labels = torch.tensor([0, 1, 1])
for _ in range(3):
    _, h_n = gru(packed)
    logits = classifier(torch.cat([h_n[0], h_n[1]], dim=1))
    loss = F.cross_entropy(logits, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
loss

# %%
# Forecasting a sine wave: training on windows, then feeding predictions back.
wave = torch.sin(torch.arange(0, 20, 0.2))
windows = wave.unfold(0, 11, 1)
inputs, targets = windows[:, :10].unsqueeze(-1), windows[:, 10:]
forecaster = nn.LSTM(1, 16, batch_first=True)
readout = nn.Linear(16, 1)
opt = torch.optim.Adam([*forecaster.parameters(), *readout.parameters()], lr=1e-2)
for _ in range(5):
    out, (h, c) = forecaster(inputs)
    loss = F.mse_loss(readout(out[:, -1]), targets)
    opt.zero_grad()
    loss.backward()
    opt.step()

# %%
window = wave[:10].clone()
forecast = []
with torch.no_grad():
    for _ in range(15):
        out, _ = forecaster(window.view(1, -1, 1))
        nxt = readout(out[:, -1]).view(1)
        forecast.append(nxt)
        window = torch.cat([window[1:], nxt])
forecast = torch.cat(forecast).numpy()
forecast.shape


# %%
# State kept on the module across chunks of a stream.
class Streaming(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 6)
        self.out = nn.Linear(6, 1)
        self.state = None

    def reset(self):
        self.state = None

    def forward(self, chunk):
        state = torch.zeros(chunk.shape[1], 6) if self.state is None else self.state.detach()
        for x in chunk:
            state = self.cell(x, state)
        self.state = state
        return self.out(state)


net = Streaming()
opt = torch.optim.Adam(net.parameters())
stream = torch.randn(40, 2, 3)
for chunk in stream.split(8):
    loss = (net(chunk) - chunk.sum((0, 2)).unsqueeze(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss.item():.2f}", end=" ")
net.reset()
