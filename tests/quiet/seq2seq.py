"""Translation with an encoder, an attending decoder and teacher forcing."""

# %%
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

device = torch.device("cpu")
SOS_token, EOS_token, MAX_LENGTH = 0, 1, 6
torch.manual_seed(4)
random.seed(4)


# %%
class Lang:
    def __init__(self, name):
        self.name = name
        self.word2index = {}
        self.index2word = {0: "SOS", 1: "EOS"}
        self.n_words = 2

    def add(self, sentence):
        for word in sentence.split(" "):
            if word not in self.word2index:
                self.word2index[word] = self.n_words
                self.index2word[self.n_words] = word
                self.n_words += 1


pairs = [
    ("je suis ici", "i am here"),
    ("tu es grand", "you are tall"),
    ("elle lit", "she reads"),
    ("il dort", "he sleeps"),
]
fra, eng = Lang("fra"), Lang("eng")
for f, e in pairs:
    fra.add(f)
    eng.add(e)


# %%
def padded(lang, sentence):
    ids = [lang.word2index[w] for w in sentence.split(" ")] + [EOS_token]
    return ids + [EOS_token] * (MAX_LENGTH - len(ids))


source = torch.tensor([padded(fra, f) for f, _ in pairs], dtype=torch.long, device=device)
target = torch.tensor([padded(eng, e) for _, e in pairs], dtype=torch.long, device=device)
train_data = TensorDataset(source, target)
train_dataloader = DataLoader(train_data, sampler=RandomSampler(train_data), batch_size=2)


# %%
class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x):
        return self.gru(self.dropout(self.embedding(x)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa, self.Ua = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long, device=device).fill_(SOS_token)
        decoder_hidden = encoder_hidden
        decoder_outputs, attentions = [], []
        for i in range(MAX_LENGTH):
            decoder_output, decoder_hidden, attn_weights = self.step(decoder_input, decoder_hidden, encoder_outputs)
            decoder_outputs.append(decoder_output)
            attentions.append(attn_weights)
            if target_tensor is not None and random.random() < 0.7:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = decoder_output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        decoder_outputs = F.log_softmax(torch.cat(decoder_outputs, dim=1), dim=-1)
        return decoder_outputs, decoder_hidden, torch.cat(attentions, dim=1)

    def step(self, x, hidden, encoder_outputs):
        embedded = self.embedding(x)
        context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
        output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
        return self.out(output), hidden, weights


# %%
def train_epoch(dataloader, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    total_loss = 0
    for input_tensor, target_tensor in dataloader:
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(input_tensor)
        decoder_outputs, _, _ = decoder(encoder_outputs, encoder_hidden, target_tensor)
        loss = criterion(decoder_outputs.view(-1, decoder_outputs.size(-1)), target_tensor.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total_loss += loss.item()
    return total_loss / len(dataloader)


def train(dataloader, encoder, decoder, n_epochs, learning_rate=0.01, print_every=2):
    start = time.time()
    plot_losses, print_loss_total = [], 0
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=learning_rate)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=learning_rate)
    criterion = nn.NLLLoss()
    for epoch in range(1, n_epochs + 1):
        loss = train_epoch(dataloader, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion)
        print_loss_total += loss
        plot_losses.append(loss)
        if epoch % print_every == 0:
            print(f"{time.time() - start:.1f}s {epoch} {print_loss_total / print_every:.3f}")
            print_loss_total = 0
    return plot_losses


# %%
encoder = EncoderRNN(fra.n_words, 16).to(device)
decoder = AttnDecoderRNN(16, eng.n_words).to(device)
plot_losses = train(train_dataloader, encoder, decoder, 6)


# %%
def evaluate(encoder, decoder, sentence):
    with torch.no_grad():
        input_tensor = torch.tensor([padded(fra, sentence)])
        encoder_outputs, encoder_hidden = encoder(input_tensor)
        decoder_outputs, decoder_hidden, decoder_attn = decoder(encoder_outputs, encoder_hidden)
        decoded_ids = decoder_outputs.topk(1).indices.squeeze()
        words = []
        for idx in decoded_ids:
            if idx.item() == EOS_token:
                break
            words.append(eng.index2word[idx.item()])
    return words, decoder_attn


encoder.eval()
decoder.eval()
for f, e in pairs[:2]:
    words, attn = evaluate(encoder, decoder, f)
    print(f, "=", e, "<", " ".join(words))
attn[0].cpu().numpy().shape

# %%
# The loss of a whole translation, summed step by step at top level.
encoder.train()
decoder.train()
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
for s, t in zip(source, target):
    memory, hidden = encoder(s.unsqueeze(0))
    x = torch.tensor([[SOS_token]])
    loss = 0
    for token in t:
        out, hidden, _ = decoder.step(x, hidden, memory)
        loss += F.cross_entropy(out.squeeze(1), token.view(1))
        x = token.view(1, 1)
        if token.item() == EOS_token:
            break
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
