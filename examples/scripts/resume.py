"""Trains on a folder of arrays. Seems resumable, but is not: run `surefoot check` on it."""

import os

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


def load(folder):
    names = os.listdir(folder)
    arrays = [np.load(os.path.join(folder, name)) for name in names]
    return torch.from_numpy(np.stack(arrays)).float()


model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
data = load("arrays")

start = 0
if os.path.exists("last.pt"):
    checkpoint = torch.load("last.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    start = checkpoint["epoch"] + 1

for epoch in range(start, 100):
    for batch in data.split(16):
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    torch.save(
        {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
        },
        "last.pt",
    )
