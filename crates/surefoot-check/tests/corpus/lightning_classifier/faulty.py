import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset, random_split


class Shapes(L.LightningDataModule):
    def __init__(self, batch_size=32, seed=0):
        super().__init__()
        self.batch_size = batch_size
        self.seed = seed

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(self.seed)
        x = torch.randn(400, 1, 8, 8, generator=g)
        y = (x.flatten(1).sum(1) > 0).long()
        full = TensorDataset(x, y)
        self.train_set, self.val_set = random_split(full, [320, 80], generator=g)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)


class Classifier(L.LightningModule):
    def __init__(self, lr=1e-3, hidden=32):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def main():
    data = Shapes()
    model = Classifier()
    trainer = L.Trainer(
        max_epochs=10,
        accelerator="auto",
        benchmark=True,
        callbacks=[
            ModelCheckpoint(monitor="val_loss", mode="min", filename="best"),
            EarlyStopping(monitor="val_loss", patience=3),
            LearningRateMonitor(),
        ],
    )
    trainer.fit(model, data)
    trainer.save_checkpoint("final.ckpt")


if __name__ == "__main__":
    main()
