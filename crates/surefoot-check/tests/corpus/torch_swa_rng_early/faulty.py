import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn


def seed_all(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


def rng_states():
    return {"torch": torch.get_rng_state(), "numpy": np.random.get_state()}


def restore_rng(states):
    torch.set_rng_state(states["torch"])
    np.random.set_state(states["numpy"])


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def mixup(x, y, alpha=0.4):
    lam = np.random.beta(alpha, alpha)
    order = torch.from_numpy(np.random.permutation(len(x)))
    return lam * x + (1 - lam) * x[order], lam * y + (1 - lam) * y[order]


def data():
    g = torch.Generator().manual_seed(31)
    x = torch.randn(160, 6, generator=g)
    return x, x[:, 0] * x[:, 1] + x[:, 2:].sum(dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--swa-start", type=int, default=2)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--resume", type=str)
    args = parser.parse_args()
    seed_all(args.seed)

    checkpoint = None
    if args.resume:
        checkpoint = torch.load(args.resume, weights_only=False)
        restore_rng(checkpoint["rng"])

    x, y = data()
    batches = [(x[i : i + args.batch], y[i : i + args.batch]) for i in range(0, len(x), args.batch)]
    model = Regressor()
    swa_model = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    swa_scheduler = SWALR(optimizer, swa_lr=0.01, anneal_epochs=3)
    loss_fn = nn.MSELoss()

    start = 0
    if checkpoint is not None:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        swa_scheduler.load_state_dict(checkpoint["swa_scheduler"])
        start = checkpoint["epoch"] + 1

    for epoch in range(start, args.epochs):
        model.train()
        total = 0.0
        for inputs, targets in batches:
            inputs, targets = mixup(inputs, targets)
            loss = loss_fn(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch >= args.swa_start:
            swa_model.update_parameters(model)
            swa_scheduler.step()
        print(f"epoch {epoch}: {total / len(batches):.4f}")
        torch.save(
            {
                "epoch": epoch,
                "model": model.state_dict(),
                "swa_model": swa_model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "swa_scheduler": swa_scheduler.state_dict(),
                "rng": rng_states(),
            },
            "swa.pt",
        )

    update_bn(batches, swa_model)
    torch.save(swa_model.module.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
