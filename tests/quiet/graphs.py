"""Graph neural networks by scatter_add, link prediction, PageRank, label propagation, random walks."""

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
n = 20
src = torch.randint(0, n, (60,))
dst = torch.randint(0, n, (60,))
edge_index = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
x = torch.randn(n, 6)
y = (x[:, 0] > 0).long()
train_mask = torch.zeros(n, dtype=torch.bool)
train_mask[:12] = True
val_mask = ~train_mask
edge_index.shape


# %%
def degree(index, n):
    deg = torch.zeros(n)
    deg.scatter_add_(0, index, torch.ones(index.numel()))
    return deg


deg = degree(edge_index[1], n + 3)
deg_inv_sqrt = deg.pow(-0.5)
deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
deg_inv_sqrt


# %%
class GCNConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x, edge_index):
        row, col = edge_index
        loops = torch.arange(x.size(0))
        row, col = torch.cat([row, loops]), torch.cat([col, loops])
        d = torch.zeros(x.size(0)).scatter_add_(0, col, torch.ones(col.numel())).pow(-0.5)
        norm = d[row] * d[col]
        h = self.lin(x)
        out = torch.zeros_like(h)
        out.index_add_(0, col, norm[:, None] * h[row])
        return out + self.bias


class GATConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.a = nn.Parameter(torch.randn(2 * cout) * 0.1)

    def forward(self, x, edge_index):
        row, col = edge_index
        h = self.lin(x)
        e = F.leaky_relu((torch.cat([h[row], h[col]], 1) * self.a).sum(1), 0.2)
        m = torch.full((x.size(0),), -float("inf")).scatter_reduce(0, col, e, "amax")
        w = (e - m[col]).exp()
        z = torch.zeros(x.size(0)).scatter_add(0, col, w)
        alpha = w / (z[col] + 1e-16)
        self._alpha = alpha.detach()
        return torch.zeros_like(h).index_add(0, col, alpha[:, None] * h[row])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = GCNConv(6, 16), GATConv(16, 2)

    def forward(self, x, edge_index):
        x = F.dropout(F.relu(self.c1(x, edge_index)), 0.3, self.training)
        return self.c2(x, edge_index)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)

# %%
best_val, best_state = 0.0, None
for epoch in range(5):
    net.train()
    opt.zero_grad()
    out = net(x, edge_index)
    loss = F.cross_entropy(out[train_mask], y[train_mask])
    loss.backward()
    opt.step()
    net.eval()
    with torch.no_grad():
        pred = net(x, edge_index).argmax(1)
    accs = [(pred[m] == y[m]).float().mean().item() for m in (train_mask, val_mask)]
    if accs[1] >= best_val:
        best_val = accs[1]
        best_state = {k: v.clone() for k, v in net.state_dict().items()}
net.load_state_dict(best_state)
best_val

# %%
adj = torch.zeros(n, n)
adj[edge_index[0], edge_index[1]] = 1
adj.fill_diagonal_(0)
lap = torch.diag(adj.sum(1)) - adj
evals, evecs = torch.linalg.eigh(lap)
pe = evecs[:, 1:4]
dist = torch.full((n, n), float("inf"))
dist[adj > 0] = 1
dist.fill_diagonal_(0)
for k in range(n):
    dist = torch.minimum(dist, dist[:, k : k + 1] + dist[k : k + 1])
hops = dist.clone()
hops[torch.isinf(hops)] = -1
hops.max(), evals[:3]

# %%
rank = torch.full((n,), 1 / n)
P = adj / adj.sum(1, keepdim=True).clamp(min=1)
for _ in range(20):
    new_rank = 0.15 / n + 0.85 * P.t() @ rank
    delta = (new_rank - rank).abs().sum().item()
    rank = new_rank
    if delta < 1e-6:
        break
labels = F.one_hot(y, 2).float()
labels[val_mask] = 0
f = labels.clone()
for _ in range(10):
    f = P @ f
    f[train_mask] = labels[train_mask]
rank.sum(), (f.argmax(1)[val_mask] == y[val_mask]).float().mean()


# %%
# Link prediction with sampled negatives.
def negatives(k):
    return torch.randint(0, n, (2, k))


emb = nn.Embedding(n, 8)
opt = torch.optim.Adam(emb.parameters(), lr=0.05)
for _ in range(4):
    pos, neg = edge_index, negatives(edge_index.size(1))
    z = emb.weight
    s = torch.cat([(z[pos[0]] * z[pos[1]]).sum(1), (z[neg[0]] * z[neg[1]]).sum(1)])
    t = torch.cat([torch.ones(pos.size(1)), torch.zeros(neg.size(1))])
    loss = F.binary_cross_entropy_with_logits(s, t)
    opt.zero_grad()
    loss.backward()
    opt.step()
auc = (s[: len(t) // 2, None] > s[None, len(t) // 2 :]).float().mean()
node_vectors = emb.weight.detach().numpy()
auc, node_vectors.shape

# %%
# Several graphs in one batch; pooling by graph.
graphs = [(torch.randn(k, 6), torch.randint(0, k, (2, 2 * k))) for k in (4, 6, 3)]
offset, xs, es, batch = 0, [], [], []
for i, (gx, ge) in enumerate(graphs):
    xs.append(gx)
    es.append(ge + offset)
    batch.append(torch.full((len(gx),), i))
    offset += len(gx)
big_x, big_e, batch = torch.cat(xs), torch.cat(es, 1), torch.cat(batch)
h = net.c1(big_x, big_e)
pooled = torch.zeros(3, 16).index_add(0, batch, h) / torch.bincount(batch).unsqueeze(1)
maxed = torch.full((3, 16), -float("inf")).scatter_reduce(0, batch[:, None].expand(-1, 16), h, "amax")
pooled.sum().backward()
pooled.shape, maxed.shape

# %%
# Random walks in numpy; transition rows of isolated nodes are undefined and dropped.
A = adj.numpy()
with np.errstate(invalid="ignore", divide="ignore"):
    trans = A / A.sum(1, keepdims=True)
trans = np.nan_to_num(trans)
rng = np.random.default_rng(0)
walks = []
for start in range(5):
    walk = [start]
    while len(walk) < 6 and trans[walk[-1]].sum() > 0:
        walk.append(int(rng.choice(n, p=trans[walk[-1]] / trans[walk[-1]].sum())))
    walks.append(walk)
walks[0]
