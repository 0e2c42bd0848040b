#!/usr/bin/env python3
"""False alarms on ordinary healthy programs.

Each kind of program is drawn several times with other data, sizes, optimizers, schedules, batch sizes, clipping,
accumulation and bfloat16. A program that does not beat a constant prediction by 10% is not healthy: it is drawn again
and counted as `redrawn`. Development seeds are below 1000; report seeds start there.

    python eval/torch/healthy.py --seed 1                     112 programs
    python eval/torch/healthy.py --seed 1 --only gan          programs whose name contains a word
    python eval/torch/healthy.py --seed 1 --json              one JSON object a line, the summary last
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import random
import sys
from collections.abc import Callable
from typing import Any

# Some virtual machines announce AMX and do not have it; bfloat16 then ends the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import surefoot  # noqa: E402
from ordinary import (  # noqa: E402
    Score, Watch, binary_entropy, blobs, cut, entropy, friedman, hits, make_optimizer, moons, options, pictures, test_loss,
    text, topics, train, waves,
)  # fmt: skip

DRAWS = 7
"""Programs of each kind."""

Program = Callable[[random.Random, Watch], tuple[Any, Score]]


def dense(rng: random.Random, inputs: int, outputs: int) -> nn.Sequential:
    """A multi-layer perceptron with the usual choices of depth, width, activation, batch norm and dropout."""
    width, activation = rng.choice([32, 64, 128]), rng.choice([nn.ReLU, nn.ReLU, nn.GELU, nn.Tanh, nn.LeakyReLU, nn.SiLU])
    norm, dropout = rng.random() < 0.3, rng.choice([0.0, 0.0, 0.1, 0.3])
    layers: list[nn.Module] = []
    for _ in range(rng.choice([1, 2, 2, 3, 4])):
        layers += [nn.Linear(inputs, width)] + ([nn.BatchNorm1d(width)] if norm else []) + [activation()]
        layers += [nn.Dropout(dropout)] if dropout else []
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def mlp_classes(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    classes, features = rng.choice([3, 5, 10]), rng.choice([10, 20, 50])
    data, test = cut(*blobs(1000, features, classes))
    model, criterion = dense(rng, features, classes), nn.CrossEntropyLoss(label_smoothing=rng.choice([0.0, 0.0, 0.1]))
    run = train(watch, options(rng), model, criterion, data, test, hits)
    return run, Score(test_loss(model, F.cross_entropy, test), entropy(test[1]))


def mlp_binary(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    x, y = moons(800)
    data, test = cut(x, y.float().unsqueeze(1))
    model = dense(rng, 2, 1)
    criterion: Any = nn.BCEWithLogitsLoss()
    if rng.random() < 0.4:
        model, criterion = nn.Sequential(model, nn.Sigmoid()), nn.BCELoss()
    chosen = options(rng, adam=(1e-3, 3e-3, 1e-2), epochs=20, bf16=False)
    threshold = 0.5 if isinstance(criterion, nn.BCELoss) else 0.0
    run = train(watch, chosen, model, criterion, data, test, lambda p, y: ((p > threshold) == (y > 0.5)).float().mean())
    return run, Score(test_loss(model, criterion, test), binary_entropy(test[1]))


def regression(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    data, test = cut(*friedman(1000, rng.choice([0.5, 1.0, 2.0])))
    model = dense(rng, 10, 1)
    criterion = rng.choice([nn.MSELoss(), nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss()])
    run = train(watch, options(rng, sgd=(0.01, 0.02), epochs=20), model, criterion, data, test)
    return run, Score(test_loss(model, F.mse_loss, test), float(test[1].var()))


def multi_label(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    x = torch.randn(1000, 20)
    labels = (x @ torch.randn(20, 8) + 0.5 * torch.randn(1000, 8) > rng.choice([0.0, 2.0])).float()
    data, test = cut(x, labels)
    model, criterion = dense(rng, 20, 8), nn.BCEWithLogitsLoss()
    accuracy = lambda p, y: ((p > 0) == (y > 0.5)).float().mean()  # noqa: E731
    run = train(watch, options(rng, epochs=15), model, criterion, data, test, accuracy)
    return run, Score(test_loss(model, criterion, test), binary_entropy(test[1]))


class ConvNet(nn.Module):
    def __init__(self, channels: int, classes: int, width: int, norm: bool, dropout: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.bn1, self.bn2 = (nn.BatchNorm2d(width), nn.BatchNorm2d(2 * width)) if norm else (nn.Identity(), nn.Identity())
        self.dropout = nn.Dropout(dropout)
        self.fc1 = nn.Linear(2 * width * 16, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = self.dropout(F.relu(self.fc1(torch.flatten(x, 1))))
        return self.fc2(x)


def cnn(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    channels, classes = rng.choice([1, 3]), rng.choice([3, 5])
    data, test = cut(*pictures(600, 16, channels, classes))
    model = ConvNet(channels, classes, rng.choice([8, 16]), rng.random() < 0.5, rng.choice([0.0, 0.25, 0.5]))
    run = train(watch, options(rng, sgd=(0.01, 0.02, 0.05), epochs=8), model, nn.CrossEntropyLoss(), data, test, hits)
    return run, Score(test_loss(model, F.cross_entropy, test), entropy(test[1]))


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + identity)


class ResNet(nn.Module):
    """Written like the networks of torchvision, with Kaiming initialization of the convolutions."""

    def __init__(self, channels: int, classes: int, blocks: list[int], zero_init: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        width, layers = 8, []
        for i, count in enumerate(blocks):
            for j in range(count):
                layers.append(BasicBlock(width, 8 * 2**i, 2 if i > 0 and j == 0 else 1))
                width = 8 * 2**i
        self.layers = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, BasicBlock) and zero_init:
                nn.init.constant_(m.bn2.weight, 0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def resnet(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    channels, classes = rng.choice([1, 3]), rng.choice([3, 5])
    data, test = cut(*pictures(400, 16, channels, classes))
    model = ResNet(channels, classes, rng.choice([[1, 1], [2, 2], [1, 1, 1]]), rng.random() < 0.3)
    chosen = options(rng, sgd=(0.02, 0.05, 0.1), epochs=8)
    run = train(watch, chosen, model, nn.CrossEntropyLoss(), data, test, hits)
    return run, Score(test_loss(model, F.cross_entropy, test), entropy(test[1]))


class Sequence(nn.Module):
    def __init__(self, kind: str, hidden: int, layers: int, bidirectional: bool, classes: int) -> None:
        super().__init__()
        cell = getattr(nn, kind)
        self.rnn = cell(3, hidden, num_layers=layers, batch_first=True, bidirectional=bidirectional)
        self.fc = nn.Linear(hidden * (2 if bidirectional else 1), classes)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.rnn(x)
        return self.fc(out.mean(1))


def recurrent(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    classes = rng.choice([2, 3, 4])
    data, test = cut(*waves(600, 24, classes))
    kind = rng.choice(["LSTM", "LSTM", "GRU", "GRU", "RNN"])
    model = Sequence(kind, rng.choice([16, 32]), rng.choice([1, 1, 2]), rng.random() < 0.3, classes)
    chosen = options(rng, adam=(1e-3, 3e-3, 5e-3), sgd=(), epochs=15)
    chosen.clip = rng.choice([1.0, 1.0, 5.0, None])
    run = train(watch, chosen, model, nn.CrossEntropyLoss(), data, test, hits)
    return run, Score(test_loss(model, F.cross_entropy, test), entropy(test[1]))


class Classifier(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, classes: int, norm_first: bool, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(1, length, width))
        block = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.encoder(self.embedding(x) + self.position[:, : x.shape[1]])
        return self.fc(self.norm(x.mean(1)))


def transformer(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    classes = rng.choice([2, 4])
    data, test = cut(*topics(800, 16, 100, classes))
    model = Classifier(100, 32, rng.choice([1, 2]), classes, rng.random() < 0.5, 16)
    chosen = options(rng, adam=(3e-4, 5e-4, 1e-3), sgd=(), epochs=8)
    run = train(watch, chosen, model, nn.CrossEntropyLoss(), data, test, hits)
    return run, Score(test_loss(model, F.cross_entropy, test), entropy(test[1]))


class CharGpt(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, length: int, tied: bool) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        block = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.lm_head.weight = self.wte.weight
        for name, p in self.named_parameters():
            if p.dim() > 1 and "norm" not in name:
                nn.init.normal_(p, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        h = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        return self.lm_head(self.ln_f(self.blocks(h, mask=mask, is_causal=True))).transpose(1, 2)


class CharLstm(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.lstm(self.encoder(x))[0]).transpose(1, 2)


def language_model(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    vocabulary = rng.choice([27, 64])
    tokens = text(500, 33, vocabulary)
    data, test = cut(tokens[:, :-1], tokens[:, 1:])
    is_gpt = rng.random() < 0.6
    model = CharGpt(vocabulary, 48, rng.choice([1, 2]), 32, rng.random() < 0.5) if is_gpt else CharLstm(vocabulary, 64)
    chosen = options(rng, adam=(1e-3, 2e-3) if is_gpt else (2e-3, 5e-3), sgd=(), batch_sizes=(16, 32), epochs=12)
    run = train(watch, chosen, model, nn.CrossEntropyLoss(), data, test, hits)
    return run, Score(test_loss(model, F.cross_entropy, test), entropy(test[1]))


def autoencoder(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    x = pictures(500, 16, 1, 5)[0]
    x = (x - x.min()) / (x.max() - x.min())
    (x, _), (held, _) = cut(x, x)
    code = rng.choice([8, 16])
    if rng.random() < 0.5:
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, code))
        decoder = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, 256), nn.Unflatten(1, (1, 16, 16)))
    else:
        encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(256, code)
        )
        decoder = nn.Sequential(
            nn.Linear(code, 256), nn.ReLU(), nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 8, 2, 2), nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 2, 2),
        )  # fmt: skip
    model = nn.Sequential(encoder, decoder, *([nn.Sigmoid()] if rng.random() < 0.6 else []))
    chosen = options(rng, adam=(1e-3, 2e-3, 3e-3), sgd=(), epochs=30)
    run = train(watch, chosen, model, nn.MSELoss(), (x, x), (held, held))
    return run, Score(test_loss(model, F.mse_loss, (held, held)), float(F.mse_loss(x.mean(0).expand_as(held), held)))


class Vae(nn.Module):
    def __init__(self, hidden: int, code: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(256, hidden)
        self.fc21, self.fc22 = nn.Linear(hidden, code), nn.Linear(hidden, code)
        self.fc3, self.fc4 = nn.Linear(code, hidden), nn.Linear(hidden, 256)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = F.relu(self.fc1(x.flatten(1)))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


def vae(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    x = (pictures(600, 16, 1, 5)[0] > 1.0).float()
    (x, _), (held, _) = cut(x, x)
    is_summed = rng.random() < 0.5

    def loss_function(output: tuple[Tensor, Tensor, Tensor], x: Tensor) -> Tensor:
        recon, mu, logvar = output
        bce = F.binary_cross_entropy(recon, x.flatten(1), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return bce + kld if is_summed else (bce + kld) / len(x)

    model = Vae(rng.choice([64, 128]), rng.choice([4, 8]))
    chosen = options(rng, adam=(1e-3, 2e-3), sgd=(), epochs=25, bf16=False)
    run = train(watch, chosen, model, loss_function, (x, x), (held, held))
    with torch.no_grad():
        reached = float(F.binary_cross_entropy(model(held)[0], held.flatten(1)))
    return run, Score(reached, binary_entropy(x.flatten(1)))


def gan(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    """A generator of points on a ring, against a discriminator."""
    angle = torch.rand(1000) * 2 * math.pi
    real = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(1000, 2) + 1.0
    noise = rng.choice([4, 8])
    generator = nn.Sequential(nn.Linear(noise, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    discriminator = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    rate, batch_size = rng.choice([5e-4, 1e-3]), rng.choice([32, 64])
    g = torch.optim.Adam(generator.parameters(), lr=rate, betas=(0.5, 0.999))
    d = torch.optim.Adam(discriminator.parameters(), lr=rate, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    def distance() -> float:
        with torch.no_grad():
            fake = generator(torch.randn(500, noise))
        return float(torch.cdist(fake, real[:500]).min(1).values.mean() + torch.cdist(real[:500], fake).min(1).values.mean())

    before = distance()
    with watch([generator, discriminator], [g, d]) as run:
        for _ in range(400):
            x = real[torch.randint(1000, (batch_size,))]
            ones, zeros = torch.ones(batch_size, 1), torch.zeros(batch_size, 1)
            fake = generator(torch.randn(batch_size, noise))
            d_loss = criterion(discriminator(x), ones) + criterion(discriminator(fake.detach()), zeros)
            d.zero_grad()
            d_loss.backward()
            d.step()
            g_loss = criterion(discriminator(fake), ones)
            g.zero_grad()
            g_loss.backward()
            g.step()
            run.step(g_loss + d_loss)
    return run, Score(distance(), before)


class UNet(nn.Module):
    def __init__(self, channels: int, outputs: int, width: int) -> None:
        super().__init__()
        self.down1, self.down2 = self.block(channels, width), self.block(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.merge = self.block(2 * width, width)
        self.out = nn.Conv2d(width, outputs, 1)

    def block(self, inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        return self.out(self.merge(torch.cat([a, self.up(self.down2(self.pool(a)))], 1)))


def segmentation(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    size = 16
    row, column = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    at = torch.randint(3, 13, (300, 2, 1, 1))
    radius = torch.randint(2, 5, (300, 1, 1))
    mask = ((row - at[:, 0]) ** 2 + (column - at[:, 1]) ** 2 <= radius**2).long()
    x = (mask + 0.5 * torch.randn(300, size, size)).unsqueeze(1)
    x = (x - x.mean()) / x.std()
    is_binary = rng.random() < 0.5
    data, test = cut(x, mask.float().unsqueeze(1) if is_binary else mask)
    model = UNet(1, 1 if is_binary else 2, 8)

    def dice_bce(output: Tensor, y: Tensor) -> Tensor:
        p = output.sigmoid()
        return F.binary_cross_entropy_with_logits(output, y) + 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)

    chosen = options(rng, sgd=(0.02, 0.05), batch_sizes=(8, 16), epochs=6)
    criterion = rng.choice([dice_bce, nn.BCEWithLogitsLoss()]) if is_binary else nn.CrossEntropyLoss()
    run = train(watch, chosen, model, criterion, data, test)
    plain = nn.BCEWithLogitsLoss() if is_binary else nn.CrossEntropyLoss()
    return run, Score(test_loss(model, plain, test), entropy(test[1].long()))


class Recommender(nn.Module):
    def __init__(self, users: int, items: int, width: int, dense: bool) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        self.mlp = nn.Sequential(nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, 1)) if dense else None

    def forward(self, pair: Tensor) -> Tensor:
        u, i = self.users(pair[:, 0]), self.items(pair[:, 1])
        score = self.mlp(torch.cat([u, i], 1)) if self.mlp is not None else (u * i).sum(1, keepdim=True)
        return score + self.user_bias(pair[:, 0]) + self.item_bias(pair[:, 1])


def recommender(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    users, items = 60, 40
    tastes = torch.randn(users, 3) @ torch.randn(3, items) / 1.7 + torch.randn(users, 1) + torch.randn(1, items)
    pairs = torch.stack([torch.randint(users, (3000,)), torch.randint(items, (3000,))], 1)
    ratings = (3 + tastes[pairs[:, 0], pairs[:, 1]] + 0.3 * torch.randn(3000)).clamp(1, 5).unsqueeze(1)
    ratings = ratings - ratings.mean()
    data, test = cut(pairs, ratings)
    model = Recommender(users, items, rng.choice([8, 16]), rng.random() < 0.5)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.1)
    chosen = options(rng, adam=(3e-3, 5e-3, 1e-2), sgd=(), batch_sizes=(64, 128), epochs=12, bf16=False)
    run = train(watch, chosen, model, nn.MSELoss(), data, test)
    return run, Score(test_loss(model, F.mse_loss, test), float(test[1].var()))


def metric_learning(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    x, y = blobs(800, 20, 5)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
    criterion = nn.TripletMarginLoss(margin=rng.choice([0.5, 1.0]))
    chosen = options(rng, sgd=())
    optimizer = make_optimizer(chosen, model.parameters())

    def embed(batch: Tensor) -> Tensor:
        return F.normalize(model(batch), dim=1)

    def others(chosen: Tensor, same: bool) -> Tensor:
        picks = [((y == y[i]) if same else (y != y[i])).nonzero()[:, 0] for i in chosen]
        return torch.stack([it[torch.randint(len(it), ())] for it in picks])

    with watch(model, optimizer) as run:
        for _ in range(200):
            anchor = torch.randint(600, (32,))
            positive, negative = others(anchor, True), others(anchor, False)
            out = embed(x[torch.cat([anchor, positive, negative])]).chunk(3)
            loss = criterion(*out)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
    with torch.no_grad():
        nearest = torch.cdist(embed(x[600:]), embed(x[:600])).argmin(1)
    return run, Score(1 - float((y[:600][nearest] == y[600:]).float().mean()), 0.8)


def policy_gradient(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    """REINFORCE in a corridor of nine places, from the middle to the right end."""
    goal, horizon, episodes = 4, 12, rng.choice([8, 16])
    policy = nn.Sequential(nn.Linear(1, 32), rng.choice([nn.ReLU, nn.Tanh])(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=rng.choice([3e-3, 5e-3, 1e-2]))

    def play(count: int) -> tuple[Tensor, Tensor]:
        place, done, logs, rewards = torch.zeros(count), torch.zeros(count), [], []
        for _ in range(horizon):
            choice = torch.distributions.Categorical(logits=policy(place.unsqueeze(1) / goal))
            action = choice.sample()
            place = (place + (2 * action - 1)).clamp(-goal, goal)
            logs.append(choice.log_prob(action) * (1 - done))
            rewards.append(torch.where(place >= goal, 1.0, -0.1) * (1 - done))
            done = torch.maximum(done, (place >= goal).float())
        return torch.stack(logs), torch.stack(rewards)

    with torch.no_grad():
        before = float(play(500)[1].sum(0).mean())
    with watch(policy, optimizer) as run:
        for _ in range(150):
            logs, rewards = play(episodes)
            returns = rewards.flip(0).cumsum(0).flip(0)
            advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
            loss = -(logs * advantage).sum(0).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
    with torch.no_grad():
        after = float(play(500)[1].sum(0).mean())
    return run, Score(1 - after, 1 - before)


def forecasting(rng: random.Random, watch: Watch) -> tuple[Any, Score]:
    t = torch.arange(900).float()
    series = (t / rng.choice([5, 8])).sin() + 0.5 * (t / 17).sin() + 0.1 * torch.randn(900)
    windows = ((series - series.mean()) / series.std()).unfold(0, 25, 1)
    data, test = cut(windows[:, None, :-1], windows[:, -1:])
    layers: list[nn.Module] = [nn.Conv1d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 16, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 24, 1))
    chosen = options(rng, sgd=(0.005, 0.01), epochs=10)
    run = train(watch, chosen, model, rng.choice([nn.MSELoss(), nn.L1Loss()]), data, test)
    return run, Score(test_loss(model, F.mse_loss, test), float(test[1].var()))


KINDS: dict[str, Program] = {
    it.__name__.replace("_", "-"): it
    for it in (
        mlp_classes, mlp_binary, regression, multi_label, cnn, resnet, recurrent, transformer, language_model, autoencoder,
        vae, gan, segmentation, recommender, metric_learning, policy_gradient, forecasting,
    )
}  # fmt: skip


def run_program(kind: str, draw: int, seed: int) -> dict[str, Any]:
    """Trains one program and returns its findings and its score."""
    watch = functools.partial(surefoot.watch, runs=None, on_finding="ignore")
    redrawn = 0
    while True:
        key = f"{kind} {draw} {seed} {redrawn}"
        rng = random.Random(key)
        torch.manual_seed(rng.getrandbits(62))
        run, score = KINDS[kind](rng, watch)
        if score.has_learned or redrawn == 4:
            break
        redrawn += 1
    found = {level: [it for it in run.findings if it.severity == level] for level in ("problem", "warning")}
    return {
        "program": f"{kind}-{draw}", "problems": [it.problem for it in found["problem"]],
        "warnings": [it.problem for it in found["warning"]], "messages": [it.message for it in found["problem"]],
        "reached": score.reached, "constant": score.constant, "healthy": score.has_learned, "redrawn": redrawn,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"programs of each kind (default {DRAWS})")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    totals = {"healthy": 0, "alarmed": 0, "warned": 0, "redrawn": 0, "not_learned": 0}
    for kind in KINDS:
        for draw in range(arguments.draws):
            if arguments.only not in f"{kind}-{draw}":
                continue
            row = run_program(kind, draw, arguments.seed)
            totals["redrawn"] += row["redrawn"]
            if row["healthy"]:
                totals["healthy"] += 1
                totals["alarmed"] += bool(row["problems"])
                totals["warned"] += bool(row["warnings"])
            else:
                totals["not_learned"] += 1
            if arguments.json:
                print(json.dumps({"event": "program", **row}), flush=True)
            else:
                result = f"{row['reached']:.3g} of {row['constant']:.3g}" + ("" if row["healthy"] else ", not learned")
                alarms = ", ".join(row["problems"]) or "-"
                print(f"{row['program']:<20} {result:<32} {alarms} {row['messages'] or ''}", flush=True)
    if arguments.json:
        print(json.dumps({"event": "summary", "seed": arguments.seed, **totals}))
    else:
        print(", ".join(f"{key} {value}" for key, value in totals.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
