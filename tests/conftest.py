"""Where the tests find real data: the folder named by CONSENSO_DATA, with the files listed in docs/data.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    folder = os.environ.get("CONSENSO_DATA")
    if not folder:
        pytest.skip("CONSENSO_DATA is not set: it names the folder with the real data sets")
    return Path(folder)
