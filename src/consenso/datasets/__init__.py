"""Data sets of the papers and of the field, with their licences, checksums and the preprocessing that was published.

Files are looked for in the folder that is passed, in $CONSENSO_DATA, in the cache folder ($CONSENSO_CACHE, else
~/.cache/consenso), and then downloaded into the cache; a file whose checksum differs is refused. A data set is one
module that holds its `Description`, which `catalogue` finds.
"""

from __future__ import annotations

from consenso.datasets.a9a import load_a9a
from consenso.datasets.adult import load_adult
from consenso.datasets.breast_cancer import load_breast_cancer
from consenso.datasets.california_housing import load_california_housing
from consenso.datasets.catalogue import catalogue, describe
from consenso.datasets.description import Dataset, Description, File
from consenso.datasets.diabetes import load_diabetes
from consenso.datasets.digits import load_digits
from consenso.datasets.femnist import load_femnist
from consenso.datasets.generalised_lasso import make_generalised_lasso
from consenso.datasets.graph import make_graph
from consenso.datasets.lasso import make_lasso, make_sphere_lasso
from consenso.datasets.mnist import load_mnist

__all__ = [
    "Dataset",
    "Description",
    "File",
    "catalogue",
    "describe",
    "load_a9a",
    "load_adult",
    "load_breast_cancer",
    "load_california_housing",
    "load_diabetes",
    "load_digits",
    "load_femnist",
    "load_mnist",
    "make_generalised_lasso",
    "make_graph",
    "make_lasso",
    "make_sphere_lasso",
]
