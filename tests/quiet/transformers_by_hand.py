"""A transformer by hand: positions, causal and padding masks, tied embeddings, a key-value cache, decoding."""

# %%
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


@dataclass
class Config:
    vocab_size: int = 30
    block_size: int = 16
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.1


cfg = Config()
cfg

# %%
mask = nn.Transformer.generate_square_subsequent_mask(5)
mask


# %%
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.c_attn = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.c_proj = nn.Linear(cfg.n_embd, cfg.n_embd)
        self.drop = nn.Dropout(cfg.dropout)
        tril = torch.tril(torch.ones(cfg.block_size, cfg.block_size))
        self.register_buffer("bias", tril.view(1, 1, cfg.block_size, cfg.block_size))
        self.last_attention = None

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (
            part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=-1)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        self.last_attention = att.detach()
        y = self.drop(att) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(cfg.n_embd), nn.LayerNorm(cfg.n_embd)
        self.attn = CausalSelfAttention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 32), nn.GELU(), nn.Linear(32, cfg.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


# %%
class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.wte = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.wpe = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.blocks = nn.ModuleList([Block(cfg) for _ in range(cfg.n_layer)])
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias.data.zero_()

    def configure_optimizers(self, lr=3e-3, weight_decay=0.1):
        params = {n: p for n, p in self.named_parameters() if p.requires_grad}
        decay = [p for p in params.values() if p.dim() >= 2]
        nodecay = [p for p in params.values() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": weight_decay}, {"params": nodecay, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))

    def forward(self, idx, targets=None):
        B, T = idx.size()
        x = self.wte(idx) + self.wpe(torch.arange(T, device=idx.device))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, top_k=5):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.cfg.block_size :])
            logits = logits[:, -1, :]
            v, _ = torch.topk(logits, top_k)
            logits[logits < v[:, [-1]]] = -float("Inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), 1)), dim=1)
        return idx


model = GPT(cfg)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %%
data = torch.randint(0, cfg.vocab_size, (400,))
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split, batch_size=8):
    source = train_data if split == "train" else val_data
    ix = torch.randint(len(source) - cfg.block_size, (batch_size,))
    x = torch.stack([source[i : i + cfg.block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + cfg.block_size + 1] for i in ix])
    return x, y


@torch.no_grad()
def estimate_loss(iters=3):
    out = {}
    model.eval()
    for split in ["train", "val"]:
        losses = torch.zeros(iters)
        for k in range(iters):
            _, loss = model(*get_batch(split))
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


# %%
optimizer = model.configure_optimizers()
warmup, max_iters = 2, 10


def get_lr(it):
    if it < warmup:
        return 3e-3 * (it + 1) / warmup
    return 3e-4 + 0.5 * (1 + math.cos(math.pi * (it - warmup) / (max_iters - warmup))) * (3e-3 - 3e-4)


best_val_loss = float("inf")
lossi = []
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    if it % 5 == 0:
        losses = estimate_loss()
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
    xb, yb = get_batch("train")
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    lossi.append(loss.log10().item())
best_val_loss, norm

# %%
context = torch.zeros((1, 1), dtype=torch.long)
print(model.generate(context, 20)[0].tolist())
attention = torch.stack([block.attn.last_attention for block in model.blocks])
attention.shape


# %%
@torch.no_grad()
def beam_search(model, prompt, width=3, steps=5):
    beams = [(prompt, 0.0)]
    for _ in range(steps):
        candidates = []
        for ids, score in beams:
            logits, _ = model(ids[:, -cfg.block_size :])
            logp = logits[:, -1].log_softmax(-1)
            top, index = logp.topk(width)
            for value, token in zip(top[0], index[0]):
                candidates.append((torch.cat([ids, token.view(1, 1)], 1), score + value.item()))
        beams = sorted(candidates, key=lambda pair: pair[1], reverse=True)[:width]
    return beams


beams = beam_search(model.eval(), context)
[round(score, 2) for _, score in beams]

# %%
# Vectorised: scores of finished beams start at -inf.
scores = torch.full((1, 3), -float("inf"))
scores[:, 0] = 0.0
with torch.no_grad():
    logp = model(context)[0][:, -1].log_softmax(-1)
total = scores.unsqueeze(-1) + logp.unsqueeze(1)
flat, position = total.view(1, -1).topk(3)
beam_id, token_id = position // cfg.vocab_size, position % cfg.vocab_size
beam_id, token_id

# %%
# An encoder over padded sentences.
PAD = 0
sentences = [[4, 7, 9, 2], [5, 3], [8, 6, 1]]
width = max(map(len, sentences))
tokens = torch.tensor([s + [PAD] * (width - len(s)) for s in sentences])
padding_mask = tokens == PAD
labels = torch.tensor([0, 1, 1])


class Encoder(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab_size, d, padding_idx=PAD)
        self.position = PositionalEncoding(d)
        layer = nn.TransformerEncoderLayer(d, nhead=2, dim_feedforward=32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(d, 2)

    def forward(self, tokens, mask):
        h = self.encoder(self.position(self.embed(tokens)), src_key_padding_mask=mask)
        h = h.masked_fill(mask.unsqueeze(-1), -torch.inf).max(dim=1).values
        return self.head(h)


encoder = Encoder()
opt = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for _ in range(3):
    loss = F.cross_entropy(encoder(tokens, padding_mask), labels, label_smoothing=0.1)
    opt.zero_grad()
    loss.backward()
    opt.step()
loss

# %%
additive = torch.zeros(padding_mask.shape).masked_fill(padding_mask, float("-inf"))
causal = torch.triu(torch.full((width, width), float("-inf")), diagonal=1)
q = k = v = torch.randn(3, 2, width, 8)
combined = causal[None, None] + additive[:, None, None, :]
attended = F.scaled_dot_product_attention(q, k, v, attn_mask=combined)
scores = q @ k.transpose(-2, -1) / 8**0.5 + combined
weights = scores.softmax(-1)
torch.allclose(weights @ v, attended, atol=1e-5)

# %%
slopes = torch.tensor([2.0 ** (-4 * (h + 1)) for h in range(2)])
distance = torch.arange(width)[None, :] - torch.arange(width)[:, None]
alibi = slopes[:, None, None] * distance.clamp(max=0) + causal
mha = nn.MultiheadAttention(16, 2, batch_first=True)
h = torch.randn(3, width, 16)
out, attn = mha(h, h, h, attn_mask=causal, key_padding_mask=additive, need_weights=True)
attn.shape, alibi.shape


# %%
# A key-value cache that grows while decoding.
class Cached(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.cache = None

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        if self.cache is not None:
            k, v = torch.cat([self.cache[0], k], 1), torch.cat([self.cache[1], v], 1)
        self.cache = (k, v)
        return F.scaled_dot_product_attention(q, k, v)


layer = Cached()
with torch.no_grad():
    x = torch.randn(1, 1, 8)
    for _ in range(5):
        x = layer(x)
layer.cache[0].shape

# %%
# Rotary positions as complex numbers.
freqs = 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8))
freqs_cis = torch.polar(torch.ones(width, 4), torch.outer(torch.arange(width).float(), freqs))
rotated = torch.view_as_real(torch.view_as_complex(q.reshape(3, 2, width, 4, 2)) * freqs_cis).flatten(3)
torch.allclose(rotated.norm(), q.norm())
