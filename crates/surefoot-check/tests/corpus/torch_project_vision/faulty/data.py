"""Datasets and loaders."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    """Small images with a bright quarter; which one is the label."""

    def __init__(self, count, seed, augment):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, count)
        self.images = rng.normal(0, 0.5, (count, 8, 8)).astype("float32")
        for image, label in zip(self.images, self.labels):
            row, column = divmod(int(label), 2)
            image[row * 4 : row * 4 + 4, column * 4 : column * 4 + 4] += 1.0
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment:
            image = random_erase(image)
            image = image + np.random.normal(0, 0.1, image.shape).astype("float32")
        return torch.from_numpy(image.copy()).unsqueeze(0), int(self.labels[index])


def random_erase(image, size=2):
    row, column = np.random.randint(0, 8 - size, 2)
    image = image.copy()
    image[row : row + size, column : column + size] = 0.0
    return image


def build_loaders(batch_size, seed):
    train, val = Blobs(128, seed, augment=True), Blobs(32, seed + 1, augment=False)
    train_loader = DataLoader(train, batch_size=batch_size, shuffle=True)
    val_loader = DataLoader(val, batch_size=batch_size, shuffle=True)
    return train_loader, val_loader
