import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.b = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        return F.relu(x + self.nb(self.b(y)))


class ResNet(nn.Module):
    def __init__(self, classes=3, channels=8):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(Residual(channels), Residual(channels))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.blocks(F.relu(self.stem(x)))
        return self.fc(x.mean(dim=(2, 3)))


class EMA:
    """A slow copy of all parameters and buffers."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for key, value in model.state_dict().items():
            if value.dtype.is_floating_point:
                self.shadow[key].mul_(self.decay).add_(value, alpha=1 - self.decay)
            else:
                self.shadow[key].copy_(value)


def build_optimizer(model, args):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decay, "weight_decay": 5e-4}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=args.lr, momentum=0.9, nesterov=True)


def dataset():
    g = torch.Generator().manual_seed(21)
    labels = torch.randint(0, 3, (96,), generator=g)
    images = torch.randn(96, 3, 6, 6, generator=g) + labels.view(-1, 1, 1, 1) * 0.5
    return TensorDataset(images, labels)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--dir", default="run")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def main():
    args = get_args()
    os.makedirs(args.dir, exist_ok=True)
    path = os.path.join(args.dir, "last.pth")
    torch.manual_seed(args.seed)
    shuffle = torch.Generator()
    shuffle.manual_seed(args.seed)
    loader = DataLoader(dataset(), batch_size=16, shuffle=True, generator=shuffle)

    model = ResNet()
    ema = EMA(model)
    optimizer = build_optimizer(model, args)
    start_epoch = 0
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    if args.resume:
        ckpt = torch.load(path, map_location="cpu")
        model.load_state_dict(ckpt["model"])
        ema.shadow = ckpt["ema"]
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        shuffle.set_state(ckpt["shuffle"])
        start_epoch = ckpt["epoch"] + 1

    for epoch in range(start_epoch, args.epochs):
        model.train()
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
        scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
        state = dict(
            epoch=epoch,
            model=model.state_dict(),
            ema=ema.shadow,
            optimizer=optimizer.state_dict(),
            scheduler=scheduler.state_dict(),
            shuffle=shuffle.get_state(),
        )
        torch.save(state, path)

    model.load_state_dict(ema.shadow)
    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
