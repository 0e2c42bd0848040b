import argparse
import math
import os

import torch
import torch.nn as nn

LATENT = 8


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(LATENT, 32), nn.BatchNorm1d(32), nn.ReLU(True), nn.Linear(32, 2)
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.main(x).squeeze(1)


def ring(count):
    angle = torch.linspace(0, 2 * math.pi, count + 1)[:-1]
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def main(opt):
    torch.manual_seed(opt.manual_seed)

    data = ring(256)
    fixed_noise = torch.randn(16, LATENT)

    net_g, net_d = Generator(), Discriminator()
    net_g.apply(weights_init)
    net_d.apply(weights_init)

    criterion = nn.BCEWithLogitsLoss()
    opt_d = torch.optim.Adam(net_d.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    opt_g = torch.optim.Adam(net_g.parameters(), lr=opt.lr, betas=(0.5, 0.999))

    start = 0
    if opt.resume:
        ckpt = torch.load(opt.checkpoint)
        net_g.load_state_dict(ckpt["net_g"])
        net_d.load_state_dict(ckpt["net_d"])
        opt_g.load_state_dict(ckpt["opt_g"])
        opt_d.load_state_dict(ckpt["opt_d"])
        torch.set_rng_state(ckpt["rng"])
        start = ckpt["epoch"] + 1

    for epoch in range(start, opt.niter):
        order = torch.randperm(len(data))
        for i in range(0, len(data), opt.batch_size):
            real = data[order[i : i + opt.batch_size]]
            ones, zeros = torch.ones(len(real)), torch.zeros(len(real))

            # Discriminator: log(D(x)) + log(1 - D(G(z)))
            net_d.zero_grad()
            fake = net_g(torch.randn(len(real), LATENT))
            loss_d = criterion(net_d(real), ones) + criterion(net_d(fake.detach()), zeros)
            loss_d.backward()
            opt_d.step()

            # Generator: log(D(G(z)))
            net_g.zero_grad()
            loss_g = criterion(net_d(fake), ones)
            loss_g.backward()
            opt_g.step()

        with torch.no_grad():
            net_g.eval()
            radius = net_g(fixed_noise).norm(dim=1).mean().item()
            net_g.train()
        print(f"[{epoch}/{opt.niter}] Loss_D: {loss_d.item():.4f} Loss_G: {loss_g.item():.4f} r: {radius:.3f}")

        torch.save({"epoch": epoch,
                    "net_g": net_g.state_dict(),
                    "net_d": net_d.state_dict(),
                    "opt_d": opt_d.state_dict(),
                    "rng": torch.get_rng_state(),
                    "opt_g": opt_g.state_dict()}, opt.checkpoint)

    os.makedirs(opt.outf, exist_ok=True)
    torch.save(net_g.state_dict(), os.path.join(opt.outf, "final.pt"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--niter", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--manual-seed", type=int, default=42)
    parser.add_argument("--checkpoint", default="gan.ckpt")
    parser.add_argument("--outf", default=".")
    parser.add_argument("--resume", action="store_true")
    main(parser.parse_args())
