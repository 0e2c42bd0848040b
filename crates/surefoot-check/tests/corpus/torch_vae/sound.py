# Variational autoencoder on 8x8 stripes.
import os

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

CHECKPOINT = "vae_checkpoint.pt"
EPOCHS = 6
LATENT = 4

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc21 = nn.Linear(32, LATENT)
        self.fc22 = nn.Linear(32, LATENT)
        self.fc3 = nn.Linear(LATENT, 32)
        self.fc4 = nn.Linear(32, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def stripes():
    images = []
    for period in range(1, 5):
        for phase in range(8):
            row = torch.tensor([float((i + phase) // period % 2) for i in range(8)])
            images.append(row.repeat(8, 1).flatten())
            images.append(row.repeat(8, 1).t().flatten())
    return torch.stack(images)


def loss_function(recon_x, x, mu, logvar, beta):
    bce = F.binary_cross_entropy(recon_x, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + beta * kld


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(stripes(), batch_size=16)

start_epoch = 1
beta = 0.0
if os.path.exists(CHECKPOINT):
    ckpt = torch.load(CHECKPOINT)
    model.load_state_dict(ckpt["model_state_dict"])
    optimizer.load_state_dict(ckpt["optimizer_state_dict"])
    beta = ckpt["beta"]
    torch.set_rng_state(ckpt["rng_state"])
    start_epoch = ckpt["epoch"] + 1
    print(f"resumed from epoch {ckpt['epoch']}")

for epoch in range(start_epoch, EPOCHS + 1):
    model.train()
    train_loss = 0.0
    for data in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar, beta)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(loader.dataset):.4f} beta {beta:.2f}")
    beta = min(1.0, beta + 0.2)
    torch.save({
        "epoch": epoch,
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "beta": beta,
        "rng_state": torch.get_rng_state(),
    }, CHECKPOINT)

torch.save(model.state_dict(), "final.pt")
