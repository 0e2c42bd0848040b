"""Sequence tagging with effective batches that are larger than what fits in memory."""
import argparse
import random

import torch
import torch.nn as nn


def corpus(count=96, length=7, vocabulary=12):
    g = torch.Generator().manual_seed(13)
    tokens = torch.randint(1, vocabulary, (count, length), generator=g)
    tags = (tokens + tokens.roll(1, dims=1)) % 3
    return tokens, tags


class Tagger(nn.Module):
    def __init__(self, vocabulary=12, width=16, tags=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.rnn = nn.RNN(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, tags)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.out(hidden)


def word_dropout(tokens, rate):
    """Replaces some tokens by the padding."""
    mask = [[random.random() >= rate for _ in row] for row in tokens]
    return tokens * torch.tensor(mask, dtype=tokens.dtype)


def epoch_order(count, seed, epoch):
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 7919 + epoch))


def save(path, model, optimizer, step):
    torch.save(
        {
            "step": step,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "python_rng": random.getstate(),
        },
        path,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--save-every", type=int, default=6)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--resume", default=None)
    args = parser.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    tokens, tags = corpus()
    per_epoch = len(tokens) // args.batch_size

    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()

    step = 0
    if args.resume:
        ckpt = torch.load(args.resume)
        model.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        step = ckpt["step"]
        random.setstate(ckpt["python_rng"])

    model.train()
    optimizer.zero_grad()
    while step < args.steps:
        epoch, batch = divmod(step, per_epoch)
        chosen = epoch_order(len(tokens), args.seed, epoch)[batch * args.batch_size :][: args.batch_size]
        logits = model(word_dropout(tokens[chosen], 0.1))
        loss = criterion(logits.flatten(0, 1), tags[chosen].flatten()) / args.accumulate
        loss.backward()
        step += 1
        if step % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        if step % args.save_every == 0:
            save("accum.pt", model, optimizer, step)
        if step % 8 == 0:
            print(f"step {step}: {loss.item() * args.accumulate:.4f}")

    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
