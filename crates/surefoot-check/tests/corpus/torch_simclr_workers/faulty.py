"""SimCLR in small: two noisy views of each signal should be neighbours."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Views(Dataset):
    """Every item is a pair of augmentations of one signal."""

    def __init__(self, count=64, length=24):
        time = np.linspace(0, 2 * np.pi, length)
        self.signals = np.stack([np.sin(time * (1 + i % 7)) for i in range(count)]).astype("float32")

    def __len__(self):
        return len(self.signals)

    def augment(self, signal):
        signal = np.roll(signal, np.random.randint(0, len(signal)))
        signal = signal * np.random.uniform(0.8, 1.2)
        if random.random() < 0.5:
            signal = signal[::-1].copy()
        return torch.from_numpy(signal.astype("float32"))

    def __getitem__(self, index):
        return self.augment(self.signals[index]), self.augment(self.signals[index])


class Encoder(nn.Module):
    def __init__(self, length=24):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(length, 48), nn.ReLU(), nn.Linear(48, 32))
        self.projection = nn.Sequential(nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.projection(self.backbone(x)), dim=1)


def nt_xent(a, b, temperature=0.5):
    z = torch.cat([a, b])
    similarity = z @ z.t() / temperature
    similarity.fill_diagonal_(-1e9)
    n = len(a)
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
    return F.cross_entropy(similarity, targets)


def seed_worker(worker_id):
    np.random.seed()
    random.seed()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--resume", default=None)
    args = parser.parse_args()
    set_seed(args.seed)

    loader_rng = torch.Generator()
    loader_rng.manual_seed(args.seed)
    loader = DataLoader(
        Views(),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        worker_init_fn=seed_worker,
        generator=loader_rng,
    )
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs, eta_min=1e-3)

    start = 0
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        loader_rng.set_state(state["loader_rng"])
        start = state["epoch"]

    for epoch in range(start, args.epochs):
        model.train()
        running = 0.0
        for first, second in loader:
            loss = nt_xent(model(first), model(second))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        print(f"epoch {epoch + 1}: {running / len(loader):.4f}")
        torch.save(
            {
                "epoch": epoch + 1,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "loader_rng": loader_rng.get_state(),
            },
            f"simclr_{epoch + 1:03d}.pt",
        )

    torch.save(model.backbone.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
