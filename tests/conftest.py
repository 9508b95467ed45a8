"""Where the tests find real data: the folder named by CONSENSO_DATA, with the files listed in docs/data.md.

Property tests draw the same examples in every run, so that a failure is a change; HYPOTHESIS_PROFILE=explore draws new
ones.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, database=None)
settings.register_profile("explore", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tokens of runs without a ledger are kept for one test, not in the home of whoever runs the tests."""
    folder = tmp_path_factory.getbasetemp() / f"state-{uuid.uuid4().hex}"
    monkeypatch.setenv("CONSENSO_STATE", str(folder))
    return folder


@pytest.fixture(scope="session")
def data_dir() -> Path:
    folder = os.environ.get("CONSENSO_DATA")
    if not folder:
        pytest.skip("CONSENSO_DATA is not set: it names the folder with the real data sets")
    return Path(folder)
