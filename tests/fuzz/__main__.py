"""`python -m tests.fuzz --seconds 60`: change what others hand in, until the time is up.

Only errors of this library may come out, which the commands turn into one sentence. What brings anything else out is
kept in tests/corpus, where the suite reads it again at every run.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.fuzz.mutations import as_bytes, mutate, mutate_json
from tests.fuzz.targets import Target, parse_json, targets

from consenso.audit.table import write_into
from consenso.errors import ConsensoError

BEGIN, END = "<!-- table of fuzzing: begin -->", "<!-- table of fuzzing: end -->"
CORPUS = Path(__file__).parents[1] / "corpus"


def read(target: Target, blob: bytes, folder: Path) -> Exception | None:
    """What reading bytes brought out, if it is no error of this library."""
    path = folder / target.file
    path.write_bytes(blob)
    try:
        target.read(path)
    except ConsensoError:
        return None
    except Exception as error:  # everything else is what is looked for
        return error
    return None


def vary(target: Target, rng: random.Random) -> bytes:
    """A changed example; half of the documents with a digest are signed again after a change of a value."""
    seed = rng.choice(target.seeds)
    content = parse_json(seed) if target.sign is not None and rng.random() < 0.75 else None
    if target.sign is None or content is None:
        return mutate(seed, rng)
    changed = mutate_json(content, rng)
    return as_bytes(target.sign(changed) if isinstance(changed, dict) else changed)


def corpus(target: Target) -> list[Path]:
    """What was found in a target before."""
    return sorted((CORPUS / target.name.replace(" ", "-")).glob("*"))


def fuzz(target: Target, rng: random.Random, folder: Path, *, until: float, most: int) -> tuple[int, list[Path]]:
    """How many examples were read, and those that brought something else out, kept in the corpus."""
    tried, found, kinds = 0, [], set()
    while tried < most and time.monotonic() < until:
        blob = vary(target, rng)
        error = read(target, blob, folder)
        tried += 1
        where = None if error is None else (type(error), traceback.extract_tb(error.__traceback__)[-1].lineno)
        if where is None or where in kinds:
            continue
        kinds.add(where)
        kept = CORPUS / target.name.replace(" ", "-") / hashlib.sha256(blob).hexdigest()[:12]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(blob)
        found.append(kept)
        sys.stdout.write("".join(traceback.format_exception(error)[-4:]) + "\n")
    return tried, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=None, help="of the changes; another one every time if left out")
    parser.add_argument("--target", help="one of them only")
    parser.add_argument("--page", type=Path, help="a page whose table is written anew")
    asked = parser.parse_args()
    rng, broken, rows = random.Random(asked.seed), 0, []
    with tempfile.TemporaryDirectory(prefix="consenso-fuzz-") as name:
        folder = Path(name)
        chosen = [each for each in targets(folder) if asked.target in (None, each.name)]
        for number, target in enumerate(chosen):
            share = asked.seconds / len(chosen)
            tried, found = fuzz(target, rng, folder, until=time.monotonic() + share, most=10**9)
            broken += len(found)
            rows.append(f"| {target.name} | {tried:,} | {len(found)} | {len(corpus(target))} |")
            told = f"{number + 1}/{len(chosen)} {target.name}: {tried} examples, {len(found)} kinds of other errors\n"
            sys.stdout.write(told)
            sys.stdout.flush()
    if asked.page is not None:
        head = "| what is read | examples | kinds of other errors | kept in the corpus |\n| --- | --- | --- | --- |\n"
        write_into(asked.page, head + "\n".join(rows) + "\n", (BEGIN, END))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
