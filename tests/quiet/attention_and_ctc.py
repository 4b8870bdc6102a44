"""Reversing words: an encoder, additive attention, teacher forcing, masks, beams, CTC."""

# %%
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(0)
torch.manual_seed(0)
PAD, SOS, EOS = 0, 1, 2
VOCAB = 12
pairs = []
for _ in range(24):
    w = [random.randrange(3, VOCAB) for _ in range(random.randint(2, 6))]
    pairs.append((torch.tensor(w + [EOS]), torch.tensor([SOS] + w[::-1] + [EOS])))
pairs[0]


# %%
class Encoder(nn.Module):
    def __init__(self, hid=16):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 8, padding_idx=PAD)
        self.rnn = nn.GRU(8, hid, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hid, hid)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.emb(src), lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, hidden = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.tanh(self.fc(torch.cat([hidden[-2], hidden[-1]], 1)))


class Attention(nn.Module):
    def __init__(self, hid=16):
        super().__init__()
        self.W = nn.Linear(3 * hid, hid)
        self.v = nn.Linear(hid, 1, bias=False)

    def forward(self, hidden, enc, mask):
        h = hidden.unsqueeze(1).expand(-1, enc.size(1), -1)
        e = self.v(torch.tanh(self.W(torch.cat([h, enc], 2)))).squeeze(2)
        e = e.masked_fill(~mask, float("-inf"))
        return F.softmax(e, 1)


class Decoder(nn.Module):
    def __init__(self, hid=16):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 8, padding_idx=PAD)
        self.attn = Attention(hid)
        self.rnn = nn.GRUCell(8 + 2 * hid, hid)
        self.out = nn.Linear(hid, VOCAB)

    def forward(self, tok, hidden, enc, mask):
        a = self.attn(hidden, enc, mask)
        ctx = torch.bmm(a.unsqueeze(1), enc).squeeze(1)
        hidden = self.rnn(torch.cat([self.emb(tok), ctx], 1), hidden)
        return self.out(hidden), hidden, a


encoder, decoder = Encoder(), Decoder()
params = list(encoder.parameters()) + list(decoder.parameters())
opt = torch.optim.Adam(params, lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)


# %%
def batches(bs=8):
    random.shuffle(pairs)
    for i in range(0, len(pairs), bs):
        src, tgt = zip(*pairs[i : i + bs])
        yield (
            pad_sequence(src, batch_first=True, padding_value=PAD),
            torch.tensor([len(s) for s in src]),
            pad_sequence(tgt, batch_first=True, padding_value=PAD),
        )


log = []
for epoch in range(2):
    ratio = 1.0 - 0.5 * epoch
    epoch_loss = 0
    for n, (src, lengths, tgt) in enumerate(batches(), 1):
        enc, hidden = encoder(src, lengths)
        mask = src != PAD
        tok = tgt[:, 0]
        loss = 0
        outputs = []
        for t in range(1, tgt.size(1)):
            logits, hidden, attn = decoder(tok, hidden, enc, mask)
            outputs.append(logits)
            loss += criterion(logits, tgt[:, t]) if (tgt[:, t] != PAD).any() else 0
            tok = tgt[:, t] if random.random() < ratio else logits.argmax(1)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        epoch_loss += loss.item() / tgt.size(1)
    log.append(epoch_loss / n)
log

# %%
# The whole output kept in one buffer, one loss at the end.
src, lengths, tgt = next(batches())
enc, hidden = encoder(src, lengths)
outputs = torch.zeros(len(src), tgt.size(1), VOCAB)
attentions = torch.zeros(len(src), tgt.size(1), src.size(1))
tok = tgt[:, 0]
for t in range(1, tgt.size(1)):
    output, hidden, a = decoder(tok, hidden, enc, src != PAD)
    outputs[:, t] = output
    attentions[:, t] = a.detach()
    tok = output.argmax(1)
loss = criterion(outputs[:, 1:].reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
opt.zero_grad()
loss.backward()
opt.step()
loss.item(), attentions[0].sum(1)

# %%
with torch.no_grad():
    one = src[:1, : lengths[0]]
    enc, hidden = encoder(one, lengths[:1])
    mask = one != PAD
    k, V = 3, VOCAB
    scores = torch.full((k,), float("-inf"))
    scores[0] = 0.0
    seqs = torch.full((k, 1), SOS)
    hidden, enc_k = hidden.repeat(k, 1), enc.expand(k, -1, -1)
    finished = torch.zeros(k, dtype=torch.bool)
    for _ in range(6):
        logits, hidden, _ = decoder(seqs[:, -1], hidden, enc_k, mask.expand(k, -1))
        logp = logits.log_softmax(-1)
        logp[finished] = float("-inf")
        logp[finished, EOS] = 0
        total = scores[:, None] + logp
        scores, flat = total.view(-1).topk(k)
        beam, token = flat // V, flat % V
        seqs = torch.cat([seqs[beam], token[:, None]], 1)
        hidden = hidden[beam]
        finished = finished[beam] | (token == EOS)
        if finished.all():
            break
seqs, scores

# %%
# Banned tokens and a minimum length are -inf before the softmax.
with torch.no_grad():
    logits, _, _ = decoder(torch.tensor([SOS]), hidden[:1], enc, mask)
filtered = logits.clone()
filtered[:, [PAD, SOS]] = -float("inf")
sorted_logits, order = filtered.sort(descending=True)
cum = sorted_logits.softmax(-1).cumsum(-1)
remove = cum > 0.8
remove[:, 1:] = remove[:, :-1].clone()
remove[:, 0] = False
filtered[remove.scatter(1, order, remove)] = -float("inf")
next_token = torch.multinomial(filtered.softmax(-1), 1)
next_token


# %%
# CTC.
class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(5, 12, batch_first=True)
        self.fc = nn.Linear(12, VOCAB)

    def forward(self, x):
        return self.fc(self.rnn(x)[0]).log_softmax(2)


acoustic = Acoustic()
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
opt = torch.optim.Adam(acoustic.parameters(), lr=1e-2)
x = torch.randn(4, 20, 5)
target = torch.randint(1, VOCAB, (4, 6))
in_len, out_len = torch.tensor([20, 18, 15, 20]), torch.tensor([6, 5, 4, 3])
ctc_losses = []
for _ in range(4):
    logp = acoustic(x).transpose(0, 1)
    loss = ctc(logp, target, in_len, out_len)
    opt.zero_grad()
    loss.backward()
    opt.step()
    ctc_losses.append(float(loss))
ctc_losses

# %%
best_path = acoustic(x).argmax(-1)
decoded = []
for row, n in zip(best_path, in_len):
    collapsed = torch.unique_consecutive(row[:n])
    decoded.append([int(i) for i in collapsed if i != 0])
per_sample = F.ctc_loss(acoustic(x).transpose(0, 1), target, in_len, out_len, reduction="none")
decoded, per_sample.detach()


# %%
def edit_distance(a, b):
    d = torch.full((len(a) + 1, len(b) + 1), float("inf"))
    d[0] = torch.arange(len(b) + 1)
    d[:, 0] = torch.arange(len(a) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + float(a[i - 1] != b[j - 1]))
    return d[-1, -1].item()


cer = sum(edit_distance(h, t[:n].tolist()) for h, t, n in zip(decoded, target, out_len)) / out_len.sum().item()
cer

# %%
# Prefix probabilities of CTC in log space begin at -inf.
NEG_INF = -float("inf")
with torch.no_grad():
    lp = acoustic(x[:1])[0, :8]
beam = {(): (0.0, NEG_INF)}
for t in range(8):
    new = {}
    for prefix, (pb, pnb) in beam.items():
        tot = torch.logaddexp(torch.tensor(pb), torch.tensor(pnb)).item()
        b, nb = new.get(prefix, (NEG_INF, NEG_INF))
        new[prefix] = (torch.logaddexp(torch.tensor(b), lp[t, 0] + tot).item(), nb)
        for c in lp[t, 1:].topk(2).indices.add(1).tolist():
            key = prefix + (c,)
            b, nb = new.get(key, (NEG_INF, NEG_INF))
            src_p = pb if prefix and prefix[-1] == c else tot
            new[key] = (b, torch.logaddexp(torch.tensor(nb), lp[t, c] + src_p).item())
    beam = dict(sorted(new.items(), key=lambda kv: -max(kv[1]))[:4])
list(beam.items())[0]
