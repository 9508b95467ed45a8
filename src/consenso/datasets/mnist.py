"""MNIST: handwritten digits, pixels divided by 255."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consenso.datasets.description import Dataset, Description, File, Resource
from consenso.datasets.files import locate
from consenso.errors import InputError

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
#: The fourth byte of an idx file is the number of axes, the third says that the cells are bytes.
BYTES = 0x08

_SUMS = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}

DESCRIPTION = Description(
    name="mnist",
    title="MNIST: handwritten digits, 28 x 28 pixels, 10 classes",
    task="multiclass",
    rows=60_000,
    test_rows=10_000,
    features=784,
    licence="CC BY-SA 3.0 according to the Keras documentation; copyright Y. LeCun and C. Cortes",
    origin="http://yann.lecun.com/exdb/mnist/ (Y. LeCun, C. Cortes, C. Burges)",
    notes="Pixels are divided by 255, so every feature lies in [0, 1]; rows are single precision.",
    resources=tuple(
        Resource(forms=(File(name=name, sha256=digest, url=MIRROR + name),)) for name, digest in _SUMS.items()
    ),
)


def load_mnist(folder: str | Path | None = None) -> Dataset:
    """MNIST with its standard split; X is float32 within [0, 1], y the digit."""
    images, labels, test_images, test_labels = (
        _read_idx(locate(resource, folder=folder)) for resource in DESCRIPTION.resources
    )
    return Dataset(
        description=DESCRIPTION,
        X=_pixels(images),
        y=labels.astype(np.int64),
        X_test=_pixels(test_images),
        y_test=test_labels.astype(np.int64),
        names=tuple(f"pixel {row},{column}" for row in range(28) for column in range(28)),
    )


def _pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return images.reshape(images.shape[0], -1).astype(np.float32) / np.float32(255)


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """An idx file: two zero bytes, the type, the number of axes, the axes as big-endian integers, then the cells."""
    raw = gzip.decompress(path.read_bytes())
    zeros, kind, axes = struct.unpack_from(">HBB", raw)
    if zeros != 0 or kind != BYTES:
        raise InputError(f"{path}: an idx file of bytes starts with 0 0 8; fetch the file again.")
    shape = struct.unpack_from(f">{axes}I", raw, 4)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
