"""A module of Lightning with metrics of torchmetrics, beside scikit-learn and pandas."""

# %%
import lightning as L
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(15)

# %%
iris = load_iris(as_frame=True)
frame = iris.frame
X_train, X_test, y_train, y_test = train_test_split(
    frame.drop(columns="target").values, frame["target"].values, random_state=0, stratify=frame["target"]
)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
baseline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
accuracy_score(y_test, baseline.predict(X_test))

# %%
train_set = TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train))
test_set = TensorDataset(torch.as_tensor(X_test).float(), torch.as_tensor(y_test))
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=32)


class Iris(L.LightningModule):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        self.train_acc = torchmetrics.Accuracy(task="multiclass", num_classes=3)
        self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=3)
        self.validation_outputs = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.train_acc(logits, y)
        self.log("train_loss", loss)
        self.log("train_acc", self.train_acc, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc.update(logits, y)
        self.validation_outputs.append(logits)
        self.log("val_loss", F.cross_entropy(logits, y))

    def on_validation_epoch_end(self):
        self.log("val_acc", self.val_acc.compute())
        self.val_acc.reset()
        self.spread = torch.cat(self.validation_outputs).std()
        self.validation_outputs.clear()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2)}


model = Iris()
model

# %%
trainer = L.Trainer(
    max_epochs=3,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[L.pytorch.callbacks.EarlyStopping("val_loss", patience=2)],
)
trainer.fit(model, train_loader, test_loader)
trainer.callback_metrics

# %%
model.eval()
with torch.inference_mode():
    probabilities = torch.cat([model(x).softmax(-1) for x, _ in test_loader])
auc = roc_auc_score(y_test, probabilities.numpy(), multi_class="ovr")
results = pd.DataFrame(probabilities.numpy(), columns=iris.target_names).assign(truth=y_test)
results.groupby("truth").mean().round(2), auc

# %%
metrics = torchmetrics.MetricCollection(
    {
        "accuracy": torchmetrics.Accuracy(task="multiclass", num_classes=3),
        "f1": torchmetrics.F1Score(task="multiclass", num_classes=3, average="macro"),
        "confusion": torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3),
    }
)
mean_loss = torchmetrics.MeanMetric()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model.train()
for x, y in train_loader:
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    metrics.update(logits.detach(), y)
    mean_loss.update(loss.item(), weight=len(y))
values = metrics.compute()
values["accuracy"], mean_loss.compute()

# %%
# Fabric with a loop of one's own.
fabric = L.Fabric(accelerator="cpu", devices=1)
net = nn.Linear(4, 3)
net, opt = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
for x, y in fabric.setup_dataloaders(train_loader):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    fabric.backward(loss)
    opt.step()
weights = pd.DataFrame(net.module.weight.detach().numpy(), columns=iris.feature_names, index=iris.target_names)
np.abs(weights.to_numpy()).max()
