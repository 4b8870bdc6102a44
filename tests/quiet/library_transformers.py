"""Tiny models of `transformers`, made from configurations: training, generation, features, accelerate."""

# %%
import copy

import torch
import torch.nn as nn
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    get_linear_schedule_with_warmup,
)

torch.manual_seed(14)
config = GPT2Config(vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1)
gpt = GPT2LMHeadModel(config)
gpt.num_parameters()

# %%
batches = [torch.randint(2, 40, (4, 12)) for _ in range(3)]
optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=1, num_training_steps=6)
losses = []
gpt.train()
for epoch in range(2):
    for ids in batches:
        outputs = gpt(input_ids=ids, labels=ids)
        outputs.loss.backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(outputs.loss.item())
losses[-1]

# %%
gpt.eval()
prompt = torch.tensor([[5, 6, 7]])
greedy = gpt.generate(prompt, max_new_tokens=5, do_sample=False, pad_token_id=1, attention_mask=torch.ones_like(prompt))
sampled = gpt.generate(
    prompt,
    max_new_tokens=5,
    do_sample=True,
    top_k=5,
    pad_token_id=1,
    attention_mask=torch.ones_like(prompt),
    output_scores=True,
    return_dict_in_generate=True,
)
greedy.tolist(), sampled.sequences.shape, len(sampled.scores)

# %%
with torch.no_grad():
    past, ids = None, prompt
    for _ in range(4):
        out = gpt(ids[:, -1:] if past is not None else ids, past_key_values=past, use_cache=True)
        past = out.past_key_values
        ids = torch.cat([ids, out.logits[:, -1:].argmax(-1)], dim=1)
    hidden = gpt(prompt, output_hidden_states=True, output_attentions=False).hidden_states
ids.tolist(), len(hidden)

# %%
bert = BertForSequenceClassification(
    BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, num_labels=2
    )
)
for p in bert.bert.embeddings.parameters():
    p.requires_grad = False
examples = [{"input_ids": torch.randint(3, 40, (n,)), "labels": n % 2} for n in (4, 7, 5, 6, 8, 3)]


def collate(features):
    width = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, f in enumerate(features):
        ids[i, : len(f["input_ids"])] = f["input_ids"]
        mask[i, : len(f["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([f["labels"] for f in features])}


loader = DataLoader(examples, batch_size=3, shuffle=True, collate_fn=collate)
next(iter(loader))["input_ids"].shape

# %%
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
optimizer = torch.optim.AdamW((p for p in bert.parameters() if p.requires_grad), lr=1e-3)
bert, optimizer, loader = accelerator.prepare(bert, optimizer, loader)
bert.train()
total_loss = 0.0
for epoch in range(2):
    for batch in loader:
        with accelerator.accumulate(bert):
            outputs = bert(**batch)
            accelerator.backward(outputs.loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(bert.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        total_loss += outputs.loss.detach().float()
total_loss / 4

# %%
bert.eval()
predictions, references = [], []
for batch in loader:
    with torch.no_grad():
        outputs = bert(**batch)
    logits, labels = accelerator.gather_for_metrics((outputs.logits, batch["labels"]))
    predictions.append(logits.argmax(dim=-1))
    references.append(labels)
(torch.cat(predictions) == torch.cat(references)).float().mean().item()

# %%
unwrapped = accelerator.unwrap_model(bert)
best_state = copy.deepcopy(unwrapped.state_dict())
embedding = unwrapped.bert.embeddings.word_embeddings.weight.detach().clone()
wider = copy.deepcopy(gpt)
wider.resize_token_embeddings(44)
wider.lm_head.weight is wider.transformer.wte.weight, embedding.shape

# %%
# Preference optimisation against a frozen reference.
reference = copy.deepcopy(gpt).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-4)
gpt.train()


def sequence_logp(model, ids):
    logp = model(ids).logits[:, :-1].log_softmax(-1)
    return logp.gather(2, ids[:, 1:, None]).squeeze(2).sum(1)


for chosen, rejected in zip(batches[:2], batches[1:]):
    with torch.no_grad():
        ref = sequence_logp(reference, chosen) - sequence_logp(reference, rejected)
    margin = sequence_logp(gpt, chosen) - sequence_logp(gpt, rejected) - ref
    loss = -torch.nn.functional.logsigmoid(0.1 * margin).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rewards = margin.detach()
rewards
