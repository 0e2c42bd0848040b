import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from .dataset import load_curves
from .network import Mixer


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = Mixer(10, config.hidden, config.dropout)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.lr)
        self.train_loader = DataLoader(load_curves(200, seed=1), batch_size=config.batch_size)
        self.val_loader = DataLoader(load_curves(50, seed=2), batch_size=50)
        self.first_epoch = 0
        self.global_step = 0
        self.best_loss = float("inf")

    def learning_rate(self):
        warm = min(1.0, (self.global_step + 1) / self.config.warmup_steps)
        return self.config.lr * warm

    def training_step(self, batch):
        inputs, targets = batch
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        loss = F.mse_loss(self.model(inputs), targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.global_step += 1
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [F.mse_loss(self.model(x), y).item() for x, y in self.val_loader]
        return sum(losses) / len(losses)

    def fit(self):
        for epoch in range(self.first_epoch, self.config.epochs):
            self.model.train()
            for batch in self.train_loader:
                self.training_step(batch)
            loss = self.validate()
            print(f"epoch {epoch} step {self.global_step} val {loss:.5f}")
            if loss < self.best_loss:
                self.best_loss = loss
                torch.save(self.model.state_dict(), "best.pt")
            self.save("last.ckpt", epoch)

    def save(self, path, epoch):
        snapshot = {
            "epoch": epoch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "global_step": self.global_step,
            "rng": torch.get_rng_state(),
        }
        torch.save(snapshot, path)

    def restore(self, path):
        snapshot = torch.load(path)
        self.model.load_state_dict(snapshot["model"])
        self.optimizer.load_state_dict(snapshot["optimizer"])
        self.first_epoch = snapshot["epoch"] + 1
        torch.set_rng_state(snapshot["rng"])
