import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset


def mlp(width, dropout=0.0):
    return nn.Sequential(
        nn.Linear(10, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 4)
    )


def kd_loss(student_logits, teacher_logits, labels, temperature=3.0, alpha=0.7):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=1),
        F.softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
    )
    return alpha * temperature**2 * soft + (1 - alpha) * F.cross_entropy(student_logits, labels)


def make_data():
    g = torch.Generator().manual_seed(1)
    x = torch.randn(144, 10, generator=g)
    y = x[:, :4].argmax(dim=1)
    return TensorDataset(x, y)


def epoch_loader(dataset, seed, epoch, batch_size, done):
    """The batches of an epoch that are still to come."""
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed + epoch))
    rest = Subset(dataset, order[done * batch_size :].tolist())
    return DataLoader(rest, batch_size=batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    dataset = make_data()
    teacher = mlp(64).eval().requires_grad_(False)
    student = mlp(12, dropout=0.1)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.97**step)

    epoch0, done = 0, 0
    if args.resume:
        ckpt = torch.load("student.pt")
        student.load_state_dict(ckpt["student"])
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        epoch0 = ckpt["epoch"]
        done = ckpt["done"]
        torch.set_rng_state(ckpt["rng"])

    for epoch in range(epoch0, args.epochs):
        student.train()
        for x, y in epoch_loader(dataset, args.seed, epoch, args.batch_size, done):
            with torch.no_grad():
                soft = teacher(x)
            loss = kd_loss(student(x), soft, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            done += 1
            if done % args.save_every == 0:
                torch.save(
                    {
                        "student": student.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "scheduler": scheduler.state_dict(),
                        "epoch": epoch,
                        "done": done,
                        "rng": torch.get_rng_state(),
                    },
                    "student.pt",
                )
        done = 0
        print(f"epoch {epoch}: {loss.item():.4f}")

    torch.save(student.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
