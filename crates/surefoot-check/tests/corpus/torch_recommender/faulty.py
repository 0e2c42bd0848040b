import argparse
import csv
import io
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

RATINGS = "\n".join(
    ["user,item"]
    + [f"user{u:02d},book{(u * 7 + k * k) % 30:02d}" for u in range(20) for k in range(6)]
)


def read_ratings(file):
    rows = list(csv.DictReader(file))
    users = {row["user"] for row in rows}
    items = {row["item"] for row in rows}
    user_index = {name: i for i, name in enumerate(users)}
    item_index = {name: i for i, name in enumerate(items)}
    pairs = [(user_index[row["user"]], item_index[row["item"]]) for row in rows]
    return pairs, len(users), len(items)


class Factorization(nn.Module):
    def __init__(self, users, items, dim):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.bias = nn.Embedding(items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(-1) + self.bias(item).squeeze(-1)


class Sampler:
    """Pairs that were seen, each with items that were not."""

    def __init__(self, pairs, items, negatives):
        self.pairs = pairs
        self.items = items
        self.negatives = negatives
        self.seen = set(pairs)

    def negative(self, user):
        while True:
            item = random.randrange(self.items)
            if (user, item) not in self.seen:
                return item

    def batches(self, size):
        for start in range(0, len(self.pairs), size):
            batch = self.pairs[start : start + size]
            users, items, labels = [], [], []
            for user, item in batch:
                users += [user] * (1 + self.negatives)
                items += [item] + [self.negative(user) for _ in range(self.negatives)]
                labels += [1.0] + [0.0] * self.negatives
            yield torch.tensor(users), torch.tensor(items), torch.tensor(labels)


def run(args):
    torch.manual_seed(args.seed)
    pairs, users, items = read_ratings(io.StringIO(RATINGS))
    model = Factorization(users, items, args.dim)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=args.lr)
    sampler = Sampler(pairs, items, args.negatives)
    for epoch in range(args.epochs):
        losses = []
        for user, item, label in sampler.batches(args.batch_size):
            loss = F.binary_cross_entropy_with_logits(model(user, item), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--negatives", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=2024)
    run(parser.parse_args())
