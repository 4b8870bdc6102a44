"""Transfer learning: frozen layers, a new head, parameter groups, schedulers, the best weights kept, surgery."""

# %%
import copy
import io
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


# %%
class BasicBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        identity = x
        out = self.bn1(self.conv1(x))
        out += identity
        return self.relu(out)


class TinyResNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layer1 = nn.Sequential(*[BasicBlock(8) for _ in range(2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.layer1(self.stem(x))), 1))


pretrained = TinyResNet()
state = {k: v.clone() for k, v in pretrained.state_dict().items()}
images = torch.rand(48, 3, 8, 8)
labels = (images[:, 0].mean((1, 2)) > 0.5).long()
mean, std = images.mean((0, 2, 3)), images.std((0, 2, 3))
images = (images - mean[:, None, None]) / std[:, None, None]
datasets = {"train": TensorDataset(images[:32], labels[:32]), "val": TensorDataset(images[32:], labels[32:])}
dataloaders = {x: DataLoader(datasets[x], batch_size=8, shuffle=x == "train") for x in ["train", "val"]}
dataset_sizes = {x: len(datasets[x]) for x in ["train", "val"]}
dataset_sizes


# %%
def train_model(model, criterion, optimizer, scheduler, num_epochs=3):
    best_model_wts = copy.deepcopy(model.state_dict())
    best_acc = 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss, running_corrects = 0.0, 0
            for inputs, targets in dataloaders[phase]:
                inputs = inputs.to(device)
                targets = targets.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, targets)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == targets.data)
            if phase == "train":
                scheduler.step()
            epoch_loss = running_loss / dataset_sizes[phase]
            epoch_acc = running_corrects.double() / dataset_sizes[phase]
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_model_wts = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_model_wts)
    return model, best_acc


# %%
model_conv = TinyResNet()
model_conv.load_state_dict(state)
for param in model_conv.parameters():
    param.requires_grad = False
num_ftrs = model_conv.fc.in_features
model_conv.fc = nn.Linear(num_ftrs, 2)
model_conv = model_conv.to(device)
criterion = nn.CrossEntropyLoss()
optimizer_conv = torch.optim.SGD(model_conv.fc.parameters(), lr=0.05, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_conv, step_size=2, gamma=0.1)
model_conv, best_acc = train_model(model_conv, criterion, optimizer_conv, exp_lr_scheduler)
best_acc

# %%
# Fine-tuning: everything learns, the body slowly.
model_ft = copy.deepcopy(model_conv).requires_grad_(True)
optimizer_ft = torch.optim.AdamW(
    [
        {"params": [p for n, p in model_ft.named_parameters() if not n.startswith("fc")], "lr": 1e-4},
        {"params": model_ft.fc.parameters(), "lr": 1e-3},
    ],
    weight_decay=1e-2,
)
scheduler = lr_scheduler.SequentialLR(
    optimizer_ft,
    [lr_scheduler.LinearLR(optimizer_ft, 0.1, total_iters=2), lr_scheduler.CosineAnnealingLR(optimizer_ft, T_max=4)],
    milestones=[2],
)
model_ft, _ = train_model(model_ft, criterion, optimizer_ft, scheduler)
scheduler.get_last_lr()

# %%
# Early stopping at top level, with the best weights put aside.
model = TinyResNet(2).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
plateau = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
best_loss, best_state, patience, bad_epochs = float("inf"), None, 2, 0
for epoch in range(6):
    model.train()
    for xb, yb in dataloaders["train"]:
        loss = criterion(model(xb.to(device)), yb.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = sum(criterion(model(xb.to(device)), yb.to(device)) for xb, yb in dataloaders["val"]) / 2
    plateau.step(val_loss)
    if val_loss < best_loss:
        best_loss, bad_epochs = val_loss, 0
        best_state = copy.deepcopy(model.state_dict())
    else:
        bad_epochs += 1
        if bad_epochs >= patience:
            break
model.load_state_dict(best_state)
best_loss

# %%
checkpoint = {
    "epoch": epoch,
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "scheduler": plateau.state_dict(),
    "loss": best_loss,
}
buffer = io.BytesIO()
torch.save(checkpoint, buffer)
buffer.seek(0)
loaded = torch.load(buffer, map_location="cpu", weights_only=False)
resumed = TinyResNet(2)
resumed.load_state_dict(loaded["model"])
optimizer2 = torch.optim.Adam(resumed.parameters(), lr=1e-3)
optimizer2.load_state_dict(loaded["optimizer"])
start_epoch = loaded["epoch"] + 1
start_epoch

# %%
# A snapshot to go back to, as a learning-rate finder does.
saved_model, saved_opt = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
lrs, lr_losses, smooth, lr = [], [], None, 1e-5
model.train()
for xb, yb in dataloaders["train"]:
    for group in optimizer.param_groups:
        group["lr"] = lr
    loss = criterion(model(xb.to(device)), yb.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
    lrs.append(lr)
    lr_losses.append(smooth)
    lr *= 5
model.load_state_dict(saved_model)
optimizer.load_state_dict(saved_opt)
lrs[min(range(len(lr_losses)), key=lr_losses.__getitem__)]

# %%
# The body of a network as a feature extractor, by children, by hooks and by hand.
backbone = nn.Sequential(*list(model.children())[:-1])
backbone.eval()
features = []
with torch.no_grad():
    for xb, _ in dataloaders["val"]:
        features.append(backbone(xb.to(device)).flatten(1).cpu())
features = torch.cat(features)
features.shape

# %%
activation = {}


def get_activation(name):
    def hook(module, inputs, output):
        activation[name] = output.detach()

    return hook


handles = [
    model.stem.register_forward_hook(get_activation("stem")),
    model.layer1.register_forward_hook(get_activation("layer1")),
]
_ = model(images[:4].to(device))
for handle in handles:
    handle.remove()
{name: tuple(a.shape) for name, a in activation.items()}

# %%
# Grad-CAM: the activation is kept with its graph until the backward.
feature_maps, gradients = [], []
h1 = model.layer1.register_forward_hook(lambda m, i, o: feature_maps.append(o))
h2 = model.layer1.register_full_backward_hook(lambda m, gi, go: gradients.append(go[0]))
score = model(images[:1].to(device))[0].max()
model.zero_grad()
score.backward()
h1.remove()
h2.remove()
weights = gradients[0].mean((2, 3), keepdim=True)
cam = F.relu((weights * feature_maps[0].detach()).sum(1)).squeeze()
cam = (cam / cam.max().clamp(min=1e-8)).cpu().numpy()
cam.shape

# %%
# Saliency of the input.
image = images[:1].clone().requires_grad_()
out = model(image)
out[0, out.argmax()].backward()
saliency = image.grad.abs().max(dim=1).values
saliency.shape

# %%
# Surgery: a wider stem that starts from the old weights, and a head renamed in the checkpoint.
old = model.stem
new = nn.Conv2d(4, 8, 3, padding=1)
with torch.no_grad():
    new.weight[:, :3] = old.weight
    new.weight[:, 3:] = old.weight.mean(1, keepdim=True)
    new.bias.copy_(old.bias)
renamed = OrderedDict((k.replace("fc.", "head."), v) for k, v in model.state_dict().items())
missing = TinyResNet(2).load_state_dict(renamed, strict=False)
model.stem = new
missing.missing_keys, missing.unexpected_keys, model(torch.rand(2, 4, 8, 8)).shape

# %%
# Statistics of the layers while training: numbers only.
stats = {name: [] for name, _ in model.named_parameters()}
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
rgbd = torch.rand(8, 4, 8, 8)
for _ in range(3):
    loss = criterion(model(rgbd), labels[:8])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for name, p in model.named_parameters():
            stats[name].append((p.std().item(), p.grad.std().item() if p.grad.numel() > 1 else 0.0))
stats["fc.bias"][-1]

# %%
# Training goes on after a checkpoint was loaded.
loaded = torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
resumed.load_state_dict(loaded["model"])
optimizer2 = torch.optim.Adam(resumed.parameters(), lr=1e-3)
optimizer2.load_state_dict(loaded["optimizer"])
best_loss = loaded["loss"]
for epoch in range(loaded["epoch"] + 1, loaded["epoch"] + 3):
    for xb, yb in dataloaders["train"]:
        loss = criterion(resumed(xb), yb)
        optimizer2.zero_grad()
        loss.backward()
        optimizer2.step()
epoch, loss.item()
