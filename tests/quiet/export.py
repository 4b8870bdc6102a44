"""A trained model on its way out: scripted, traced, exported, saved, captured by `torch.compile`."""

# %%
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(16)
x, y = torch.randn(32, 4), torch.randint(0, 2, (32,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 8), nn.Linear(8, 2)
        self.bn = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.fc2(F.relu(self.bn(self.fc1(x))))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
model.eval()

# %%
# This backend captures the graph and needs no compiler.
compiled = torch.compile(model, backend="eager")
with torch.no_grad():
    same = torch.allclose(compiled(x), model(x), atol=1e-5)
torch.compiler.reset()
same

# %%
traced = torch.jit.trace(model, x)
scripted = torch.jit.script(model)
with torch.no_grad():
    difference = (traced(x) - scripted(x)).abs().max().item()
difference

# %%
program = torch.export.export(model, (x,))
reloaded = program.module()
reloaded(x).argmax(1).float().mean()

# %%
for file in (buffer := io.BytesIO(), second := io.BytesIO()):
    torch.save(model.state_dict(), file)
    file.seek(0)
fresh = Net()
fresh.load_state_dict(torch.load(buffer, weights_only=True))
fresh.eval()
half = Net().half()
half.load_state_dict(torch.load(second, map_location="cpu"))
half = half.to(torch.bfloat16)
fresh(x).equal(model(x)), half.fc1.weight.dtype

# %%
params = sum(p.numel() for p in model.parameters() if p.requires_grad)
size = sum(t.numel() * t.element_size() for t in [*model.parameters(), *model.buffers()])
by_layer = {name: p.detach().abs().mean().item() for name, p in model.named_parameters()}
biggest = max(model.parameters(), key=lambda p: p.numel())
params, size, by_layer, biggest.shape

# %%
# Batch norm folded into the layer before it.
with torch.no_grad():
    factor = model.bn.weight / torch.sqrt(model.bn.running_var + model.bn.eps)
    folded = nn.Linear(4, 8)
    folded.weight.copy_(model.fc1.weight * factor[:, None])
    folded.bias.copy_((model.fc1.bias - model.bn.running_mean) * factor + model.bn.bias)
    torch.testing.assert_close(folded(x), model.bn(model.fc1(x)))

# %%
# Int8 by hand, for one matrix.
w = model.fc2.weight.detach()
scale = w.abs().max() / 127
q = torch.clamp((w / scale).round(), -127, 127).to(torch.int8)
restored = q.float() * scale
error = (restored - w).abs().max()
error <= scale / 2 + 1e-6
