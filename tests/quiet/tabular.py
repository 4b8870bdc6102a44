"""A table with holes: pandas, imputation, embeddings of categories, folds, metrics, plots prepared."""

# %%
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.decomposition import PCA
from sklearn.metrics import classification_report, confusion_matrix, roc_curve
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import LabelEncoder, StandardScaler
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler, TensorDataset

rng = np.random.default_rng(5)
torch.manual_seed(5)
df = pd.DataFrame(
    {
        "age": rng.normal(40, 10, 90),
        "income": rng.lognormal(3, 1, 90),
        "city": rng.choice(["a", "b", "c", None], 90),
        "joined": pd.date_range("2020-01-01", periods=90),
    }
)
df.loc[rng.choice(90, 12, replace=False), "age"] = np.nan
df["target"] = (df["income"] > df["income"].median()).astype(int)
df.isna().sum()

# %%
df.describe()

# %%
filled = df.copy()
filled["age_missing"] = filled["age"].isna().astype(np.float32)
filled["age"] = filled["age"].fillna(filled["age"].median())
filled["city"] = filled["city"].fillna("none")
filled["log_income"] = np.log1p(filled["income"])
filled["month"] = filled["joined"].dt.month
encoder = LabelEncoder().fit(filled["city"])
filled["city_id"] = encoder.transform(filled["city"])
num_cols, cat_cols = ["age", "log_income", "age_missing"], ["city_id", "month"]
scaler = StandardScaler()
X_num = scaler.fit_transform(filled[num_cols]).astype(np.float32)
X_cat = filled[cat_cols].to_numpy(dtype=np.int64)
y = filled["target"].to_numpy(dtype=np.float32)
X_num.shape, X_cat.max(0)


# %%
class TabularDataset(Dataset):
    def __init__(self, num, cat, y):
        self.num, self.cat, self.y = torch.from_numpy(num), torch.from_numpy(cat), torch.from_numpy(y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"num": self.num[i], "cat": self.cat[i], "y": self.y[i]}


class TabularNet(nn.Module):
    def __init__(self, cards, n_num):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(c, min(4, c)) for c in cards)
        total = sum(e.embedding_dim for e in self.embs)
        self.bn = nn.BatchNorm1d(n_num)
        self.mlp = nn.Sequential(nn.Linear(total + n_num, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))

    def forward(self, num, cat):
        e = torch.cat([emb(cat[:, i]) for i, emb in enumerate(self.embs)], 1)
        return self.mlp(torch.cat([e, self.bn(num)], 1)).squeeze(1)


ds = TabularDataset(X_num, X_cat, y)
cards = (X_cat.max(0) + 1).tolist()
ds[0]

# %%
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
oof = np.full(len(ds), np.nan, dtype=np.float32)
fold_scores, models = [], []
for fold, (tr, va) in enumerate(StratifiedKFold(3, shuffle=True, random_state=0).split(X_num, y)):
    model = TabularNet(cards, 3).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(ds, batch_size=16, sampler=SubsetRandomSampler(tr))
    for epoch in range(3):
        model.train()
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            loss = F.binary_cross_entropy_with_logits(model(batch["num"], batch["cat"]), batch["y"])
            opt.zero_grad()
            loss.backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        p = model(ds.num[va].to(device), ds.cat[va].to(device)).sigmoid().cpu().numpy()
    oof[va] = p
    fold_scores.append(((p > 0.5) == y[va]).mean())
    models.append(model)
    print(f"fold {fold}: {fold_scores[-1]:.3f}")
np.mean(fold_scores), np.isnan(oof).sum()

# %%
cm = confusion_matrix(y, oof > 0.5)
fpr, tpr, thresholds = roc_curve(y, oof)
best_threshold = thresholds[np.argmax(tpr - fpr)]
norm_cm = cm / cm.sum(axis=1, keepdims=True)
results = pd.DataFrame({"fold": range(3), "acc": fold_scores})
results.loc["mean"] = results.mean()
thresholds, best_threshold

# %%
features = {}


def save_features(name):
    def hook(module, args, output):
        features[name] = output.detach()

    return hook


handle = models[0].mlp[1].register_forward_hook(save_features("hidden"))
with torch.no_grad():
    models[0](ds.num, ds.cat)
handle.remove()
H = features["hidden"].numpy()
pca = PCA(2).fit(H)
coords = pca.transform(H)
U, S, V = torch.pca_lowrank(features["hidden"], q=2)
ours = (features["hidden"] - features["hidden"].mean(0)) @ V
coords.shape, pca.explained_variance_ratio_, ours.shape

# %%
by_city = filled.groupby("city")["target"].agg(["mean", "count", "std"])
pivot = filled.pivot_table(index="city", columns="month", values="income", aggfunc="mean")
rolling = filled["income"].rolling(7).mean()
change = filled["income"].pct_change()
lagged = filled["income"].shift(1)
corr = filled[num_cols].corr()
city_vectors = models[0].embs[0].weight.detach().cpu().numpy()
pivot.shape, rolling.isna().sum(), corr.isna().sum().sum()

# %%
# Trained on what is there: NaN in the targets is masked out of the loss.
targets = torch.tensor(df["age"].to_numpy(), dtype=torch.float32).unsqueeze(1)
observed = ~torch.isnan(targets)
reg = nn.Linear(2, 1)
inputs = torch.tensor(X_num[:, 1:])
opt = torch.optim.Adam(reg.parameters(), lr=0.1)
for _ in range(5):
    pred = reg(inputs)
    loss = F.mse_loss(pred[observed], targets[observed])
    opt.zero_grad()
    loss.backward()
    opt.step()
imputed = torch.where(observed, targets, reg(inputs).detach())
imputed.isnan().any(), loss.item()

# %%
# Permutation importance on copies of the columns.
base = ((models[0](ds.num, ds.cat) > 0).float() == ds.y).float().mean().item()
importance = {}
for j, col in enumerate(num_cols):
    shuffled = ds.num.clone()
    shuffled[:, j] = shuffled[torch.randperm(len(ds)), j]
    with torch.no_grad():
        importance[col] = base - ((models[0](shuffled, ds.cat) > 0).float() == ds.y).float().mean().item()
pd.Series(importance).sort_values()

# %%
ensemble = torch.stack([m(ds.num, ds.cat).detach().sigmoid() for m in models]).mean(0)
submission = pd.DataFrame({"id": df.index, "p": ensemble.numpy()})
submission["rank"] = submission["p"].rank()
print(classification_report(y, ensemble.numpy() > 0.5, zero_division=0))
submission.head()
