"""Learns the parity of short strings, easy ones first."""
import hashlib
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

SEED = 11
EPOCHS = 4
BATCH = 16
LONGEST = 8


def names():
    return [f"{n:0{length}b}" for length in range(3, LONGEST) for n in range(0, 2**length, 3)]


def held_out(name):
    """One sample in ten is for testing, always the same ones."""
    return hashlib.sha256(name.encode()).digest()[0] % 10 == 0


class Parity(Dataset):
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        bits = [float(c) for c in self.samples[index]]
        padded = torch.tensor(bits + [-1.0] * (LONGEST - len(bits)))
        return padded, float(sum(bits) % 2)


def curriculum(samples, epoch):
    limit = 4 + epoch
    return [s for s in samples if len(s) <= limit]


def accuracy(model, dataset):
    model.eval()
    with torch.no_grad():
        right = sum(((model(x) > 0).float().item() == y) for x, y in dataset)
    return right / max(1, len(dataset))


def main():
    torch.manual_seed(SEED)
    random.seed(SEED)
    samples = names()
    train = [s for s in samples if not held_out(s)]
    test = Parity([s for s in samples if held_out(s)])
    random.shuffle(train)

    model = nn.Sequential(nn.Linear(LONGEST, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)
    loss_fn = nn.BCEWithLogitsLoss()
    draws = torch.Generator().manual_seed(SEED)

    for epoch in range(EPOCHS):
        dataset = Parity(curriculum(train, epoch))
        weights = [float(len(s)) for s in dataset.samples]
        sampler = WeightedRandomSampler(weights, num_samples=64, generator=draws)
        loader = DataLoader(dataset, batch_size=BATCH, sampler=sampler)
        model.train()
        for x, y in loader:
            loss = loss_fn(model(x), y.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {len(dataset)} samples, loss {loss.item():.4f}, test {accuracy(model, test):.3f}")

    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
