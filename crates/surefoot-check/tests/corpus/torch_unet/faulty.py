import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def prepare(root, count=24, size=16):
    """Discs of random size and place, and where they are."""
    rng = np.random.default_rng(5)
    os.makedirs(os.path.join(root, "images"))
    os.makedirs(os.path.join(root, "masks"))
    y, x = np.mgrid[:size, :size]
    for i in range(count):
        cx, cy, r = rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(2, 5)
        mask = ((x - cx) ** 2 + (y - cy) ** 2 < r * r).astype("float32")
        image = mask + rng.normal(0, 0.3, mask.shape).astype("float32")
        np.save(os.path.join(root, "images", f"{i:03d}.npy"), image)
        np.save(os.path.join(root, "masks", f"{i:03d}.npy"), mask)


class Discs(Dataset):
    def __init__(self, root):
        self.root = root
        self.names = [n for n in os.listdir(os.path.join(root, "images")) if n.endswith(".npy")]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        name = self.names[index]
        image = np.load(os.path.join(self.root, "images", name))
        mask = np.load(os.path.join(self.root, "masks", name))
        return torch.from_numpy(image).unsqueeze(0), torch.from_numpy(mask).unsqueeze(0)


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = block(1, 8)
        self.down2 = block(8, 16)
        self.up1 = block(16 + 8, 8)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        skip = self.down1(x)
        deep = self.down2(F.max_pool2d(skip, 2))
        up = F.interpolate(deep, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.up1(torch.cat([up, skip], dim=1)))


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    overlap = (p * target).sum(dim=(1, 2, 3))
    return (1 - (2 * overlap + eps) / (p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + eps)).mean()


def main(args):
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")

    with tempfile.TemporaryDirectory() as root:
        prepare(root)
        dataset = Discs(root)
        shuffle = torch.Generator().manual_seed(args.seed)
        loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, generator=shuffle)
        net = UNet().to(device)
        if args.compile:
            net = torch.compile(net, mode="max-autotune-no-cudagraphs")
        optimizer = torch.optim.RMSprop(net.parameters(), lr=args.lr, momentum=0.9)
        for epoch in range(1, args.epochs + 1):
            net.train()
            epoch_loss = 0.0
            for image, mask in loader:
                image, mask = image.to(device), mask.to(device)
                logits = net(image)
                loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_value_(net.parameters(), 0.1)
                optimizer.step()
                epoch_loss += loss.item()
            print(f"epoch {epoch}: loss {epoch_loss / len(loader):.4f}")
    torch.save(net.state_dict(), args.output)


if __name__ == "__main__":
    p = argparse.ArgumentParser("Train the U-Net")
    p.add_argument("--epochs", "-e", type=int, default=3)
    p.add_argument("--batch-size", "-b", type=int, default=6)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--output", default="final.pt")
    main(p.parse_args())
