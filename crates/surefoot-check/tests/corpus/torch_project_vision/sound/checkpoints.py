"""Writing and reading checkpoints."""
import os

import numpy as np
import torch


def save_checkpoint(path, model, optimizer, order, epoch):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    state = {
        "epoch": epoch,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "order": order.get_state(),
    }
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def load_checkpoint(path, model, optimizer, order):
    state = torch.load(path, map_location="cpu", weights_only=False)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    order.set_state(state["order"])
    epoch = state["epoch"] + 1
    return epoch
