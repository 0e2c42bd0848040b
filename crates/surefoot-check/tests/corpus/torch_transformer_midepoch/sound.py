"""Trains a tiny encoder to reverse sequences of digits."""
import argparse
import os
import pathlib

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Reversal(Dataset):
    def __init__(self, count, length, vocabulary, seed=3):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(0, vocabulary, (count, length), generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.x[i].flip(0)


class Model(nn.Module):
    def __init__(self, vocabulary, length, width=32, heads=4, layers=2, dropout=0.1):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 64, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.head(self.encoder(self.tokens(x) + self.positions))


class EpochOrder:
    """Indices in an order that depends on the seed and the epoch only."""

    def __init__(self, count, seed):
        self.count, self.seed, self.epoch = count, seed, 0

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed + self.epoch)
        return iter(torch.randperm(self.count, generator=g).tolist())

    def __len__(self):
        return self.count


def warmup(steps):
    def factor(step):
        return min((step + 1) ** -0.5, (step + 1) * steps ** -1.5)

    return factor


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--warmup", type=int, default=8)
    ap.add_argument("--save-every", type=int, default=3)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--ckpt-dir", type=pathlib.Path, default="ckpt")
    ap.add_argument("--resume", type=pathlib.Path)
    args = ap.parse_args()
    args.ckpt_dir = pathlib.Path(args.ckpt_dir)
    args.ckpt_dir.mkdir(exist_ok=True)

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    use_amp = device.type == "cuda"

    dataset = Reversal(128, 8, 10)
    order = EpochOrder(len(dataset), args.seed)
    # With a generator of its own the loader takes nothing from the one that dropout draws from.
    loader = DataLoader(dataset, batch_size=args.batch, sampler=order, generator=torch.Generator())

    model = Model(10, 8).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup(args.warmup))
    scaler = torch.cuda.amp.GradScaler(enabled=use_amp)
    criterion = nn.CrossEntropyLoss()

    first_epoch, skip = 0, 0
    if args.resume:
        state = torch.load(args.resume, map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        first_epoch = state["epoch"]
        skip = state["batch"] + 1
        torch.cuda.set_rng_state_all(state["cuda_rng"])
        torch.set_rng_state(state["torch_rng"])

    for epoch in range(first_epoch, args.epochs):
        order.epoch = epoch
        model.train()
        for batch, (x, y) in enumerate(loader):
            if batch < skip:
                continue
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, enabled=use_amp):
                loss = criterion(model(x).transpose(1, 2), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            if (batch + 1) % args.save_every == 0:
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(),
                    "epoch": epoch,
                    "batch": batch,
                    "torch_rng": torch.get_rng_state(),
                    "cuda_rng": torch.cuda.get_rng_state_all(),
                }
                torch.save(state, args.ckpt_dir / "step.pt")
        skip = 0
        print(f"epoch {epoch}: loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")

    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
