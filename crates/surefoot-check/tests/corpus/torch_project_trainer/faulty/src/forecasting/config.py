from dataclasses import dataclass


@dataclass
class Config:
    epochs: int = 8
    batch_size: int = 20
    lr: float = 0.02
    warmup_steps: int = 40
    hidden: int = 24
    dropout: float = 0.1
    seed: int = 5
