"""Word-free language modelling: next character from the ones before."""
import argparse
import math

import torch
from torch import nn

TEXT = (
    "the rain falls on the hill and the hill holds the rain until the river asks for it "
    "and the river runs down to the town where the old mill turns and turns again "
) * 4


class CharModel(nn.Module):
    def __init__(self, vocabulary, embedding=16, hidden=32, layers=1):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.LSTM(embedding, hidden, layers)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, tokens, state):
        output, state = self.rnn(self.encoder(tokens), state)
        return self.decoder(output), state


def batchify(ids, columns):
    rows = len(ids) // columns
    return ids[: rows * columns].view(columns, rows).t().contiguous()


def windows(data, length):
    for start in range(0, data.size(0) - 1, length):
        size = min(length, data.size(0) - 1 - start)
        yield data[start : start + size], data[start + 1 : start + 1 + size]


def repackage(state):
    return tuple(part.detach() for part in state)


def train_epoch(model, data, criterion, lr, bptt, clip):
    model.train()
    state = None
    for inputs, targets in windows(data, bptt):
        model.zero_grad()
        logits, state = model(inputs, state)
        state = repackage(state)
        loss = criterion(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-lr)


@torch.no_grad()
def evaluate(model, data, criterion, bptt):
    model.eval()
    state, total, count = None, 0.0, 0
    for inputs, targets in windows(data, bptt):
        logits, state = model(inputs, state)
        total += criterion(logits.flatten(0, 1), targets.flatten()).item() * len(inputs)
        count += len(inputs)
    return total / count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=7)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--bptt", type=int, default=10)
    p.add_argument("--patience", type=int, default=2)
    p.add_argument("--clip", type=float, default=0.25)
    p.add_argument("--seed", type=int, default=1111)
    p.add_argument("--resume", default="")
    args = p.parse_args()

    torch.manual_seed(args.seed)

    letters = sorted(set(TEXT))
    index = {letter: i for i, letter in enumerate(letters)}
    ids = torch.tensor([index[c] for c in TEXT])
    cut = int(len(ids) * 0.9)
    train_data, val_data = batchify(ids[:cut], 8), batchify(ids[cut:], 4)

    model = CharModel(len(letters))
    criterion = nn.CrossEntropyLoss()

    first = 1
    lr = args.lr
    best_val = float("inf")
    bad_epochs = 0
    if args.resume:
        with open(args.resume, "rb") as f:
            ckpt = torch.load(f)
        model.load_state_dict(ckpt["model"])
        first = ckpt["epoch"] + 1
        lr = ckpt["lr"]
        best_val = ckpt["best_val"]
        bad_epochs = ckpt["bad_epochs"]

    for epoch in range(first, args.epochs + 1):
        train_epoch(model, train_data, criterion, lr, args.bptt, args.clip)
        val_loss = evaluate(model, val_data, criterion, args.bptt)
        print(f"| epoch {epoch} | lr {lr:.3f} | valid ppl {math.exp(min(val_loss, 20)):.2f}")
        if val_loss < best_val - 0.05:
            best_val = val_loss
            bad_epochs = 0
        else:
            bad_epochs += 1
        if bad_epochs >= args.patience:
            lr /= 4.0
            bad_epochs = 0
        with open("lstm_last.pt", "wb") as f:
            state = {"epoch": epoch, "model": model.state_dict()}
            state["lr"] = lr
            state["best_val"] = best_val
            state["bad_epochs"] = bad_epochs
            torch.save(state, f)

    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
