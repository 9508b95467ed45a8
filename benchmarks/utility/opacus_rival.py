"""Opacus DP-SGD on a linear layer: its own accountant and sampler; the best of a grid, and its example's settings."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.utility.tasks import Task


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an Opacus user has to choose."""

    rate: float
    batch: int
    epochs: int
    clip: float


# The values of Opacus' own MNIST example (examples/mnist.py).
DEFAULTS = Settings(rate=0.1, batch=64, epochs=10, clip=1.0)
GRID = tuple(
    Settings(rate=rate, batch=batch, epochs=epochs, clip=clip)
    for rate, (batch, epochs), clip in itertools.product((4.0, 16.0, 64.0), ((1024, 10), (4096, 20)), (0.5, 1.0))
)


def fit(task: Task, settings: Settings, epsilon: float, delta: float, seed: int) -> Any:
    """Train; the coefficients of the last iterate, (features, outputs)."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    outputs = task.classes if task.kind == "multiclass" else 1
    X = torch.tensor(np.asarray(task.X), dtype=torch.float32)
    if task.kind == "binary":
        y, loss = torch.tensor((task.y > 0)[:, None], dtype=torch.float32), torch.nn.BCEWithLogitsLoss()
    elif task.kind == "multiclass":
        y, loss = torch.tensor(task.y), torch.nn.CrossEntropyLoss()
    else:
        y, loss = torch.tensor(task.y[:, None], dtype=torch.float32), torch.nn.MSELoss()
    layer: Any = torch.nn.Linear(X.shape[1], outputs, bias=False)
    torch.nn.init.zeros_(layer.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(X, y), batch_size=min(settings.batch, len(X))
        )
        layer, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
            module=layer,
            optimizer=torch.optim.SGD(layer.parameters(), lr=settings.rate),
            data_loader=loader,
            target_epsilon=epsilon,
            target_delta=delta,
            epochs=settings.epochs,
            max_grad_norm=settings.clip,
        )
        for _ in range(settings.epochs):
            for rows, targets in loader:
                if not len(rows):
                    continue
                optimizer.zero_grad()
                loss(layer(rows), targets).backward()
                optimizer.step()
    return layer.state_dict()["_module.weight"].numpy().T.astype(np.float64)
