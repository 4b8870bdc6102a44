"""Other people's loops: transformers' Trainer and decoders, accelerate around frozen features, a manual Lightning GAN, metrics."""

# %%
import copy
import tempfile

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import (
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

torch.manual_seed(0)

# %%
llama = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
)
ids = torch.randint(3, 50, (6, 10))
mask = torch.ones_like(ids)
mask[0, :4] = 0
opt = torch.optim.AdamW(llama.parameters(), lr=1e-3)
for _ in range(2):
    out = llama(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))
    out.loss.backward()
    opt.step()
    opt.zero_grad()
out.loss.item(), out.logits.shape

# %%
llama.eval()
tokens = llama.generate(ids[:2], attention_mask=mask[:2], max_new_tokens=4, num_beams=2, pad_token_id=0)
with torch.no_grad():
    plain = llama(ids, attention_mask=mask, output_hidden_states=True)
hidden = torch.stack(plain.hidden_states)
pooled = (hidden[-1] * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
tokens.shape, hidden.shape, pooled.shape

# %%
t5 = T5ForConditionalGeneration(
    T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0, pad_token_id=0
    )
)
loss = t5(input_ids=ids, attention_mask=mask, labels=ids[:, :5].contiguous()).loss
loss.backward()
grads = {n: p.grad.norm().item() for n, p in t5.named_parameters() if p.grad is not None}
vit = ViTForImageClassification(
    ViTConfig(
        image_size=8,
        patch_size=4,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=3,
    )
)
vit.to("cpu")
len(grads), vit(pixel_values=torch.rand(2, 3, 8, 8)).logits.shape


# %%
class Items(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"pixel_values": torch.rand(3, 8, 8, generator=g), "labels": torch.tensor(i % 3)}


def compute_metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


folder = tempfile.TemporaryDirectory()
arguments = TrainingArguments(
    folder.name,
    per_device_train_batch_size=4,
    num_train_epochs=1,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    save_strategy="no",
    logging_steps=1,
    eval_strategy="epoch",
)
trainer = Trainer(
    model=vit, args=arguments, train_dataset=Items(), eval_dataset=Items(), compute_metrics=compute_metrics
)
result = trainer.train()
metrics = trainer.evaluate()
metrics["eval_accuracy"], trainer.state.log_history[0]["loss"]

# %%
bert = BertModel(
    BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
)
for p in bert.parameters():
    p.requires_grad_(False)


class Classifier(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(16, 2)

    def forward(self, **batch):
        with torch.no_grad():
            h = self.backbone(**batch).last_hidden_state[:, 0]
        return self.head(h)


accelerator = Accelerator(cpu=True)
model = Classifier(bert)
optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-2)
dl = DataLoader(TensorDataset(ids, mask, torch.arange(6) % 2), batch_size=3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)
model, optimizer, dl, scheduler = accelerator.prepare(model, optimizer, dl, scheduler)
losses = []
for epoch in range(2):
    for i, m, y in dl:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(input_ids=i, attention_mask=m), y)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach()).mean().item())
accelerator.unwrap_model(model).head.weight.dtype, losses[-1]


# %%
class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d = nn.Linear(2, 4), nn.Linear(4, 1)

    def training_step(self, batch):
        g_opt, d_opt = self.optimizers()
        real = batch[0]
        fake = self.g(torch.randn(len(real), 2, device=self.device))
        d_loss = F.softplus(-self.d(real)).mean() + F.softplus(self.d(fake.detach())).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        g_loss = F.softplus(-self.d(fake)).mean()
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()
        self.log_dict({"g": g_loss, "d": d_loss}, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.g.parameters(), 1e-3), torch.optim.Adam(self.d.parameters(), 1e-3)


class Points(L.LightningDataModule):
    def setup(self, stage=None):
        self.data = TensorDataset(torch.randn(16, 4))

    def train_dataloader(self):
        return DataLoader(self.data, batch_size=8)


gan, points = GAN(), Points()
fit = L.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
fit.fit(gan, datamodule=points)
fit.callback_metrics

# %%
rmse, auroc = torchmetrics.MeanSquaredError(squared=False), torchmetrics.AUROC(task="binary")
binary = [torchmetrics.Precision("binary"), torchmetrics.Recall("binary")]
tracker = torchmetrics.MetricTracker(torchmetrics.MetricCollection(binary))
running = torchmetrics.MetricCollection(
    {"cm": torchmetrics.ConfusionMatrix("binary"), "ap": torchmetrics.AveragePrecision("binary")}
)
per_class = torchmetrics.Accuracy(task="multiclass", num_classes=3, average="none")
for epoch in range(2):
    tracker.increment()
    for _ in range(3):
        p, t = torch.rand(8), torch.randint(0, 2, (8,))
        rmse.update(p, t.float())
        auroc(p, t)
        tracker.update(p, t)
        running(p, t)
tracker.best_metric(), rmse.compute(), auroc.compute(), running.compute()["cm"]

# %%
history = []
kept = copy.deepcopy(auroc)
auroc.reset()
per_class.update(torch.randn(4, 3), torch.zeros(4, dtype=torch.long))
history.append(per_class.compute())
merged = {k: v.tolist() for k, v in running.compute().items()}
folder.cleanup()
history, merged, kept.compute()
