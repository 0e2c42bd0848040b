"""python train.py [--resume last.ckpt]"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "src"))

import torch

from forecasting.config import Config
from forecasting.trainer import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default=None)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()

    config = Config(epochs=args.epochs)
    torch.manual_seed(config.seed)
    trainer = Trainer(config)
    if args.resume:
        trainer.restore(args.resume)
    trainer.fit()
    torch.save(
        {"last": trainer.model.state_dict(), "best": torch.load("best.pt")}, "final.pt"
    )


if __name__ == "__main__":
    main()
