import torch
from torch.utils.data import TensorDataset


def load_curves(count, length=10, seed=0):
    g = torch.Generator().manual_seed(seed)
    start = torch.rand(count, 1, generator=g) * 6.28
    t = torch.arange(length + 1).float()
    curves = torch.sin(start + t / 3)
    return TensorDataset(curves[:, :-1], curves[:, -1])
