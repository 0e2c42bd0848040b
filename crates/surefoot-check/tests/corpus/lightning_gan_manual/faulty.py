import argparse

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset


def network(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.LeakyReLU(0.2), nn.Linear(32, o))


class GAN(pl.LightningModule):
    def __init__(self, latent=8, lr=2e-4):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = network(latent, 2)
        self.discriminator = network(2, 1)
        self.average = {k: v.clone() for k, v in self.generator.state_dict().items()}
        self.difficulty = 0.1

    def adversarial_loss(self, logits, real):
        target = torch.full_like(logits, 1.0 if real else 0.0)
        return F.binary_cross_entropy_with_logits(logits, target)

    def training_step(self, batch, batch_idx):
        (real,) = batch
        opt_g, opt_d = self.optimizers()
        noise = torch.randn(len(real), self.hparams.latent, device=self.device)

        fake = self.generator(noise)
        loss_g = self.adversarial_loss(self.discriminator(fake), True)
        opt_g.zero_grad()
        self.manual_backward(loss_g)
        opt_g.step()

        loss_d = self.adversarial_loss(self.discriminator(real), True)
        loss_d = loss_d + self.difficulty * self.adversarial_loss(self.discriminator(fake.detach()), False)
        opt_d.zero_grad()
        self.manual_backward(loss_d)
        opt_d.step()
        self.log_dict({"g_loss": loss_g, "d_loss": loss_d}, prog_bar=True)

    def on_train_epoch_end(self):
        self.difficulty = min(1.0, self.difficulty * 1.5)
        for key, value in self.generator.state_dict().items():
            self.average[key].lerp_(value, 0.1)

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        return [opt_g, opt_d], []


def points(count=512):
    g = torch.Generator().manual_seed(3)
    angle = torch.rand(count, generator=g) * 6.283
    return TensorDataset(torch.stack([angle.cos(), angle.sin()], 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-epochs", type=int, default=20)
    parser.add_argument("--ckpt-path", default=None)
    args = parser.parse_args()

    pl.seed_everything(7)
    loader = DataLoader(points(), batch_size=64)
    model = GAN()
    checkpoint = ModelCheckpoint(dirpath="checkpoints", save_last=True, every_n_epochs=1)
    trainer = pl.Trainer(
        max_epochs=args.max_epochs,
        callbacks=[checkpoint],
        deterministic="warn",
    )
    trainer.fit(model, loader, ckpt_path=args.ckpt_path)

    model.generator.load_state_dict(model.average)
    torch.save(model.generator.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
