import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class NoisyDigits(Dataset):
    """Bars with fresh noise every epoch."""

    def __init__(self, count=120, seed=0):
        self.count, self.seed, self.epoch = count, seed, 0

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        label = i % 5
        image = torch.zeros(5, 5)
        image[label] = 1.0
        return image + 0.3 * torch.randn(5, 5), label


def setup():
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if world > 1:
        dist.init_process_group("gloo")
    return rank, world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=3407)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    rank, world = setup()
    torch.manual_seed(args.seed + rank)

    dataset = NoisyDigits(seed=args.seed)
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, shuffle=True, seed=args.seed)
    loader = DataLoader(dataset, batch_size=args.batch_size // world, sampler=sampler)
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 16), nn.Tanh(), nn.Linear(16, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    start_epoch = 0
    if args.resume:
        ckpt = torch.load("ddp.pt", map_location="cpu")
        model.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        start_epoch = ckpt["epoch"] + 1
    network = DDP(model) if world > 1 else model

    for epoch in range(start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        dataset.epoch = epoch
        network.train()
        for images, labels in loader:
            loss = F.cross_entropy(network(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")
            torch.save(
                {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                "ddp.pt",
            )

    if rank == 0:
        torch.save(model.state_dict(), "final.pt")
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
