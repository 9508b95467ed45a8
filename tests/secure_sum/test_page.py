"""What docs/secure-sum.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

from consenso.privacy.threshold import least_threshold

PAGE = (Path(__file__).parents[2] / "docs" / "secure-sum.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/secure-sum.md", "exec"), {})


def test_the_table_of_thresholds_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.M)
    assert len(rows) == 5
    for parties, absent, threshold, dropouts in (map(int, row) for row in rows):
        assert threshold == least_threshold(parties, absent)
        assert dropouts == parties - threshold
