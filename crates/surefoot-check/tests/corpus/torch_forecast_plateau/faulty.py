import argparse
import copy

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ReduceLROnPlateau


class Forecaster(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, window):
        _, last = self.gru(window)
        return self.out(last[-1]).squeeze(-1)


class EarlyStopping:
    """Stops when the validation loss has not improved for a while, and keeps the best weights."""

    def __init__(self, patience, net):
        self.patience = patience
        self.best = float("inf")
        self.count = 0
        self.weights = copy.deepcopy(net.state_dict())

    def step(self, loss, net):
        if loss < self.best - 1e-3:
            self.best = loss
            self.count = 0
            self.weights = copy.deepcopy(net.state_dict())
        else:
            self.count += 1
        return self.count >= self.patience


def series(length=240):
    t = torch.arange(length, dtype=torch.float32)
    noise = torch.randn(length, generator=torch.Generator().manual_seed(99))
    return torch.sin(t / 5) + 0.5 * torch.sin(t / 13) + 0.3 * noise


def windows(values, size):
    x = torch.stack([values[i : i + size] for i in range(len(values) - size)])
    return x.unsqueeze(-1), values[size:]


def train_one_epoch(net, x, y, optimizer, loss_fn, batch):
    net.train()
    for start in range(0, len(x), batch):
        loss = loss_fn(net(x[start : start + batch]), y[start : start + batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def validate(net, x, y, loss_fn):
    net.eval()
    with torch.no_grad():
        return loss_fn(net(x), y).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--window", type=int, default=12)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--patience", type=int, default=5)
    parser.add_argument("--resume")
    args = parser.parse_args()
    torch.manual_seed(4)

    values = series()
    x_train, y_train = windows(values[:180], args.window)
    x_val, y_val = windows(values[180:], args.window)

    net = Forecaster()
    loss_fn = nn.SmoothL1Loss()
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    pruner = EarlyStopping(args.patience, net)

    begin = 0
    if args.resume:
        saved = torch.load(args.resume)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        begin = saved["epoch"] + 1

    for epoch in range(begin, args.epochs):
        train_one_epoch(net, x_train, y_train, optimizer, loss_fn, args.batch)
        val_loss = validate(net, x_val, y_val, loss_fn)
        scheduler.step(val_loss)
        stop = pruner.step(val_loss, net)
        print(f"{epoch:3d} {val_loss:.4f} best {pruner.best:.4f} waited {pruner.count} lr {optimizer.param_groups[0]['lr']}")
        torch.save(
            {
                "epoch": epoch,
                "net": net.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            },
            "forecast.pt",
        )
        if stop:
            break

    torch.save({"best": pruner.weights, "last": net.state_dict()}, "final.pt")


if __name__ == "__main__":
    main()
