"""Every discovered algorithm obeys every law. A new file in consenso/algorithms is enough to be tested here."""

from __future__ import annotations

import pytest

from consenso.algorithms import discover
from consenso.testing import laws


@pytest.mark.parametrize("law", laws.EVERY, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", discover())
def test_law(name: str, law: laws.Law) -> None:
    law(discover()[name].example())
