import argparse
import math
import os

import torch
import torch.nn as nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--init-from", default="scratch", choices=["scratch", "resume"])
parser.add_argument("--max-iters", type=int, default=20)
parser.add_argument("--eval-interval", type=int, default=5)
parser.add_argument("--compile", action="store_true")
args = parser.parse_args()

block_size, batch_size, n_embd, n_head = 12, 8, 24, 2
learning_rate, min_lr, warmup_iters = 1e-1, 1e-3, 4
device = "cuda" if torch.cuda.is_available() else "cpu"

torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True

text = "to be or not to be that is the question whether it is nobler in the mind to suffer " * 6
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split, generator=None):
    source = train_data if split == "train" else val_data
    ix = torch.randint(len(source) - block_size, (batch_size,), generator=generator)
    x = torch.stack([source[i : i + block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + 1 + block_size] for i in ix])
    return x.to(device), y.to(device)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(0.1)
        )
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)))

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, n_head, c // n_head).transpose(1, 2) for part in self.qkv(x).split(c, dim=2)
        )
        att = (q @ k.transpose(-2, -1)) / math.sqrt(c // n_head)
        att = att.masked_fill(self.mask[:t, :t] == 0, float("-inf")).softmax(dim=-1)
        return (att @ v).transpose(1, 2).reshape(b, t, c)

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(n_embd, vocabulary)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        logits = self.head(self.blocks(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimate_loss(model, eval_iters=3):
    out = {}
    model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            x, y = get_batch(split)
            losses[k] = model(x, y).item()
        out[split] = losses.mean().item()
    model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / max(1, args.max_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


iter_num = 0
best_val_loss = 1e9
model = GPT(len(chars)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
if args.init_from == "resume":
    checkpoint = torch.load("ckpt.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    iter_num = checkpoint["iter_num"]
    best_val_loss = checkpoint["best_val_loss"]
raw_model = model
if args.compile:
    model = torch.compile(model, mode="max-autotune")

while True:
    if iter_num % args.eval_interval == 0:
        losses = estimate_loss(model)
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            torch.save(raw_model.state_dict(), "best.pt")
        if iter_num > 0:
            checkpoint = {
                "model": raw_model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "iter_num": iter_num,
                "best_val_loss": best_val_loss,
            }
            torch.save(checkpoint, "ckpt.pt")
    if iter_num >= args.max_iters:
        break
    for group in optimizer.param_groups:
        group["lr"] = get_lr(iter_num)
    x, y = get_batch("train")
    loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    iter_num += 1

torch.save({"last": raw_model.state_dict(), "best": torch.load("best.pt")}, "final.pt")
