import argparse
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def synthesize(folder):
    """Two classes of spectra: one peak, two peaks."""
    rng = np.random.default_rng(0)
    axis = np.linspace(0, 1, 32)
    for i in range(40):
        label = i % 2
        centers = rng.uniform(0.1, 0.9, label + 1)
        values = sum(np.exp(-((axis - c) ** 2) / 0.002) for c in centers)
        np.save(folder / f"{label}_{i:03d}.npy", (values + rng.normal(0, 0.1, 32)).astype("float32"))


def read(path):
    values = np.load(path)
    return (values - values.mean()) / values.std(), int(path.name.split("_")[0])


def load_folder(folder, threads):
    paths = [p for p in folder.iterdir() if p.suffix == ".npy"]
    spectra, labels = [], []
    with ThreadPoolExecutor(max_workers=threads) as pool:
        jobs = [pool.submit(read, path) for path in paths]
        for job in as_completed(jobs):
            values, label = job.result()
            spectra.append(values)
            labels.append(label)
    return torch.from_numpy(np.stack(spectra)).unsqueeze(1), torch.tensor(labels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5, padding=2)
        self.pool = nn.AdaptiveAvgPool1d(8)
        self.fc = nn.Linear(64, 2)

    def forward(self, x):
        return self.fc(self.pool(F.relu(self.conv(x))).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=4)
    args = parser.parse_args()

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.manual_seed(2)
    torch.use_deterministic_algorithms(True, warn_only=True)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synthesize(folder)
        inputs, labels = load_folder(folder, args.threads)

    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for i in range(0, len(inputs), 8):
            x, y = inputs[i : i + 8].to(device), labels[i : i + 8].to(device)
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    torch.save(net.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
