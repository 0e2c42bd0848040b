"""Tests of PyTorch models run on one thread: their tensors are too small for more."""

import torch

torch.set_num_threads(1)
