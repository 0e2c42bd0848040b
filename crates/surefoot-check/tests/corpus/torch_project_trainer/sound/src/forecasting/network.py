from torch import nn


class Mixer(nn.Module):
    def __init__(self, length, hidden, dropout):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(length, hidden),
            nn.GELU(),
            nn.LayerNorm(hidden),
            nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)
