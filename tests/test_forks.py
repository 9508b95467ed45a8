"""A forked program is a process of its own: its folder, environment, input, output, signals and end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests import forks

SCRIPT = """
import os, sys
print(os.getcwd(), os.environ.get("ONLY_HERE"), os.environ.get("HOME"), sys.stdin.read(), *sys.argv[1:])
print("wrong", file=sys.stderr)
sys.exit(3)
"""
WAITS = """
import time
print("here", flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("stopped")
"""


def test_what_it_is_given_and_what_it_gives_back(tmp_path: Path) -> None:
    done = forks.run("a", "b", script=SCRIPT, cwd=tmp_path, env={"ONLY_HERE": "yes", "HOME": None}, typed="typed")
    assert (done.returncode, done.stderr) == (3, "wrong\n")
    assert done.stdout == f"{tmp_path} yes None typed a b\n"
    assert "ONLY_HERE" not in os.environ


def test_an_error_that_nobody_catches_is_exit_code_1() -> None:
    done = forks.run(script="raise ValueError('oh')")
    assert done.returncode == 1
    assert "ValueError: oh" in done.stderr


@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 0, "here\nstopped\n"), (signal.SIGKILL, -9, "here\n")]
)
def test_signals(number: int, code: int, said: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = forks.start(cwd=tmp_path, env=os.environ, out=out, script=WAITS)
    while not (out.exists() and out.read_text()):
        assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(number)
    assert process.wait(300) == code
    assert out.read_text() == said


def test_a_number_that_another_process_had_before_says_nothing_of_its_end() -> None:
    """Linux counts to 32,768 and starts again: a process once seemed to have ended, by the kill of an earlier one."""
    told = iter([{"ended": 7, "code": -9}, {"started": 7}])
    made = forks.Forks()
    made._socket = Mock(recv=lambda size: json.dumps(next(told)).encode())
    assert made._hear() is None
    again = forks.Forked(made, made._hear(), [])
    assert (again.pid, again.returncode) == (7, None)
