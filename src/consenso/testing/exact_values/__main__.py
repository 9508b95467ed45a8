"""The command: compare the guarantees of every algorithm with exact values, and write the table of a page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from consenso.algorithms import discover
from consenso.audit.table import write_into
from consenso.errors import write_count
from consenso.testing.exact_values.law import Examined, examine
from consenso.testing.exact_values.table import BEGIN, END, markdown


def main(arguments: list[str]) -> int:
    """Exit codes: 0 nothing is below its exact value, 1 something is."""
    parser = argparse.ArgumentParser(prog="python -m consenso.testing.exact_values", description=__doc__)
    parser.add_argument("algorithm", nargs="*", help="all, if none is named")
    parser.add_argument(
        "--changes", type=int, help="all plans with so many things changed; without it, few plans that cover all pairs"
    )
    parser.add_argument("--page", type=Path, help="a page whose table is written anew")
    chosen = parser.parse_args(arguments)
    examined: list[Examined] = []
    for name in chosen.algorithm or discover():
        examined.append(examine(discover()[name].example(), changes=chosen.changes))
        sys.stdout.write(_summary(examined[-1]))
        sys.stdout.flush()
    if chosen.page is None:
        sys.stdout.write("\n" + markdown(examined))
    else:
        write_into(chosen.page, markdown(examined), (BEGIN, END))
    return int(any(each.below or each.unstated for each in examined))


def _summary(examined: Examined) -> str:
    lines = [f"{examined.algorithm}: {examined.plans} plans, {len(examined.findings)} guarantees"]
    lines += [f"  left out, {write_count(count, 'plan')}: {reason}" for reason, count in examined.left_out.items()]
    worst = sorted(examined.below, key=lambda finding: finding.ratio)
    lines += [f"  FALSE: {said}" for said in [finding.sentence() for finding in worst] + examined.unstated]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
