"""FEMNIST: handwritten characters by writer, the five per cent sample of Ryu and Kim, as far as it is available.

Reference: M. Ryu, K. Kim, "Differentially private federated learning via inexact ADMM", 2021.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consenso.datasets.description import Dataset, Description, File, Resource
from consenso.datasets.files import locate

SMALL = Resource(
    forms=(
        File(
            name="femnist_small.npz",
            sha256="89e550271c8af9723b39dd0fb9980befcbba9aa75f2edb0c553a3efd1b30a1ee",
        ),
    )
)
EXTRA = Resource(
    forms=(
        File(
            name="femnist_extra.npz",
            sha256="2a15f13388d19262a907387fc1cf0d438deec75f648fcad8a671cebd1bd1ed5b",
        ),
    )
)

DESCRIPTION = Description(
    name="femnist",
    title="FEMNIST: handwritten characters of many writers, 28 x 28 pixels, 62 classes",
    task="multiclass",
    rows=15_440,
    test_rows=4_167,
    features=784,
    licence="images NIST Special Database 19 (US government work) through LEAF; repository MIT",
    origin="https://github.com/APPFL/DPFL-IADMM-Classification, Inputs/Femnist_Train_small and Femnist_Test_small",
    notes=(
        "INCOMPLETE training part: 15,440 of the paper's 36,708 training images, of 114 of its 195 writers; the test "
        "part (4,167 images, 195 writers) is complete. The absent writers wrote more letters, so the mix of classes "
        "differs between the parts, and the paper's test error cannot be reached. Ink is 1 and paper 0."
    ),
    resources=(SMALL, EXTRA),
)


def load_femnist(folder: str | Path | None = None, *, extra: bool = False) -> Dataset:
    """FEMNIST with `users` and `users_test` the index of the writer; X is float32 within [0, 1], y the class.

    extra: 30,303 images of 787 further writers, which are not data of the paper, are added to the training part.
    The training part of the paper is INCOMPLETE; see `notes`. Test images of writers with training images are those
    with numpy.isin(users_test, users).
    """
    with np.load(locate(SMALL, folder=folder), allow_pickle=False) as small:
        X, y, users = _ink(small["x_train"]), small["y_train"], small["writer_train"].astype(np.int64)
        X_test, y_test = _ink(small["x_test"]), small["y_test"]
        users_test, writers = small["writer_test"].astype(np.int64), small["writers"].size
    if extra:
        with np.load(locate(EXTRA, folder=folder), allow_pickle=False) as more:
            X = np.concatenate([X, _ink(more["x"])])
            y = np.concatenate([y, more["y"]])
            users = np.concatenate([users, writers + more["writer"].astype(np.int64)])
    return Dataset(
        description=DESCRIPTION,
        X=X,
        y=y.astype(np.int64),
        X_test=X_test,
        y_test=y_test.astype(np.int64),
        names=tuple(f"pixel {row},{column}" for row in range(28) for column in range(28)),
        users=users,
        users_test=users_test,
    )


def _ink(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.float32(1) - pixels.astype(np.float32) / np.float32(255)
