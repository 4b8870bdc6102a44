"""A classifier of points on three arms of a spiral, trained at top level and then by functions."""

# %%
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
device


# %%
def spiral(per_class, classes=3):
    points, labels = [], []
    for k in range(classes):
        radius = torch.linspace(0.0, 1.0, per_class)
        angle = torch.linspace(4.0 * k, 4.0 * (k + 1), per_class) + torch.randn(per_class) * 0.2
        points.append(torch.stack([radius * angle.sin(), radius * angle.cos()], dim=1))
        labels.append(torch.full((per_class,), k))
    return torch.cat(points), torch.cat(labels)


X, y = spiral(40)
dataset = TensorDataset(X, y)
train_set, test_set = random_split(dataset, [90, 30])
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
test_loader = DataLoader(test_set, batch_size=16)
X.shape, y.shape

# %%
xb, yb = next(iter(train_loader))
print(xb.shape, yb[:5], xb.min(), xb.max())

# %%
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

# %%
losses = []
for epoch in range(5):
    running_loss = 0.0
    for i, (inputs, labels) in enumerate(train_loader):
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    losses.append(running_loss / len(train_loader))
    print(f"epoch {epoch}: {losses[-1]:.3f}")

# %%
smoothed = np.convolve(losses, np.ones(2) / 2, mode="valid")
best_epoch = int(np.argmin(losses))
smoothed

# %%
correct, total = 0, 0
model.eval()
with torch.no_grad():
    for inputs, labels in test_loader:
        pred = model(inputs.to(device)).argmax(dim=1)
        correct += (pred == labels.to(device)).sum().item()
        total += labels.size(0)
print(f"accuracy {correct / total:.1%}")


# %%
def train(model, loader, optimizer, criterion):
    model.train()
    total_loss, total_correct, seen = 0.0, 0, 0
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * inputs.size(0)
        total_correct += (outputs.argmax(1) == labels).sum().item()
        seen += inputs.size(0)
    return total_loss / seen, total_correct / seen


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    total_loss = torch.zeros((), device=device)
    total_correct = torch.zeros((), device=device)
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        outputs = model(inputs)
        total_loss += criterion(outputs, labels) * len(labels)
        total_correct += (outputs.argmax(1) == labels).sum()
    return (total_loss / len(loader.dataset)).item(), (total_correct / len(loader.dataset)).item()


# %%
history = {"train_loss": [], "train_acc": [], "test_loss": [], "test_acc": []}
for epoch in range(5):
    train_loss, train_acc = train(model, train_loader, optimizer, criterion)
    test_loss, test_acc = evaluate(model, test_loader, criterion)
    for key, value in zip(history, (train_loss, train_acc, test_loss, test_acc)):
        history[key].append(value)
history["test_acc"][-1]


# %%
class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def average(self):
        return self.sum / max(self.count, 1)


# %%
loss_meter, acc_meter = AverageMeter("loss"), AverageMeter("accuracy")
model.train()
for inputs, labels in train_loader:
    outputs = model(inputs.to(device))
    loss = F.cross_entropy(outputs, labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss_meter.update(loss.item(), len(labels))
    acc_meter.update((outputs.argmax(1).cpu() == labels).float().mean().item(), len(labels))
print(loss_meter.average, acc_meter.average)

# %%
confusion = torch.zeros(3, 3, dtype=torch.long)
all_probs, all_labels = [], []
model.eval()
with torch.inference_mode():
    for inputs, labels in test_loader:
        logits = model(inputs.to(device)).cpu()
        all_probs.append(logits.softmax(dim=1))
        all_labels.append(labels)
        for t, p in zip(labels, logits.argmax(1)):
            confusion[t, p] += 1
probs, targets = torch.cat(all_probs), torch.cat(all_labels)
precision = confusion.diag() / confusion.sum(0).clamp(min=1)
confusion, precision

# %%
grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 20), torch.linspace(-1, 1, 20), indexing="xy"), dim=-1)
with torch.no_grad():
    regions = model(grid.reshape(-1, 2).to(device)).argmax(1).reshape(20, 20).cpu().numpy()
points = X.numpy()
regions.shape, points[:2]

# %%
sample, label = test_set[0]
logits = model(sample.unsqueeze(0).to(device))
F.softmax(logits, dim=1).detach().cpu().numpy().round(3), label.item()
