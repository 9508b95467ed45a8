"""a9a: Adult with numbers cut into ranges, 123 binary features, sparse."""

from __future__ import annotations

from pathlib import Path

from consenso.datasets.description import Dataset, Description, File, Resource
from consenso.datasets.files import locate
from consenso.tables import read_libsvm

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"

DESCRIPTION = Description(
    name="a9a",
    title="a9a: Adult as 123 binary features",
    task="binary",
    rows=32_561,
    test_rows=16_281,
    features=123,
    licence="derived from UCI Adult (CC BY 4.0 as far as known); the LIBSVM site states none",
    origin="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html#a9a (J. Platt)",
    notes="Feature 123 never occurs in the test part. Numbers were cut at quantiles of the data, which is not private.",
    resources=(
        Resource(
            forms=(
                File(name="a9a.gz", sha256="82d347cf414924a79e7972829fdeb99ff23346742c49a3bc76b89ff8736a485e"),
                File(
                    name="a9a",
                    sha256="f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
                    url=SITE + "a9a",
                ),
            )
        ),
        Resource(
            forms=(
                File(name="a9a.t.gz", sha256="d52d0c91c3f108f1bf34e4af73003a01ce19c3fcf099f319f084ebb349b8d16c"),
                File(
                    name="a9a.t",
                    sha256="1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
                    url=SITE + "a9a.t",
                ),
            )
        ),
    ),
)


def load_a9a(folder: str | Path | None = None) -> Dataset:
    """a9a with its standard split; X is CSR with entries 0 and 1, y is -1 or +1."""
    (X, y), (X_test, y_test) = (
        read_libsvm(locate(resource, folder=folder), features=DESCRIPTION.features)
        for resource in DESCRIPTION.resources
    )
    names = tuple(str(position) for position in range(1, DESCRIPTION.features + 1))
    return Dataset(description=DESCRIPTION, X=X, y=y, X_test=X_test, y_test=y_test, names=names)
