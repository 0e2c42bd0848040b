"""Networks by name."""
import torch.nn as nn


class ConvNet(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(width * 16, 4))

    def forward(self, x):
        return self.head(self.features(x))


def build_model(name):
    widths = {"small": 6, "wide": 12}
    return ConvNet(widths[name], dropout=0.2)
