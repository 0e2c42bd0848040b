"""Fits a small perceptron to a table of house prices."""
import numpy as np
import torch
import torch.nn as nn

EPOCHS = 8
BATCH = 32
NOISE = 0.05


# A table as it would come out of a CSV file: area, rooms, age, distance.
table = np.random.default_rng(7)
features = table.normal(size=(256, 4)).astype("float32")
prices = features @ np.array([2.0, 0.7, -0.4, -1.1], dtype="float32") + 3.0

mean, std = features.mean(axis=0), features.std(axis=0)
features = (features - mean) / std

split = int(0.8 * len(features))
x_train, y_train = features[:split], prices[:split]
x_val = torch.from_numpy(features[split:])
y_val = torch.from_numpy(prices[split:])

model = nn.Sequential(
    nn.Linear(4, 32),
    nn.ReLU(),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
)
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for start in range(0, len(x_train), BATCH):
        x = x_train[start : start + BATCH]
        x = x + NOISE * np.random.randn(*x.shape).astype("float32")
        y = torch.from_numpy(y_train[start : start + BATCH])
        prediction = model(torch.from_numpy(x)).squeeze(1)
        loss = loss_fn(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)

    model.eval()
    with torch.no_grad():
        val_loss = loss_fn(model(x_val).squeeze(1), y_val).item()
    print(f"epoch {epoch:2d}  train {total / len(x_train):.4f}  val {val_loss:.4f}")

torch.save(model.state_dict(), "final.pt")
