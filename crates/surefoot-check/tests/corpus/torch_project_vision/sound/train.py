"""Entry point: python train.py --epochs 4"""
import argparse

import numpy as np
import torch
import torch.nn as nn

from checkpoints import load_checkpoint, save_checkpoint
from data import build_loaders
from models import build_model


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="small", choices=["small", "wide"])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=123)
    parser.add_argument("--resume", default="")
    return parser.parse_args()


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return correct / len(loader.dataset)


def main():
    args = parse_args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    order = torch.Generator().manual_seed(args.seed)
    train_loader, val_loader = build_loaders(args.batch_size, args.seed, order)
    model = build_model(args.model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    epoch = 0
    if args.resume:
        epoch = load_checkpoint(args.resume, model, optimizer, order)

    while epoch < args.epochs:
        loss = train_one_epoch(model, train_loader, criterion, optimizer)
        accuracy = evaluate(model, val_loader)
        print(f"[{epoch}] loss {loss:.4f} acc {accuracy:.3f}")
        save_checkpoint("runs/checkpoint.pt", model, optimizer, order, epoch)
        epoch += 1

    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
