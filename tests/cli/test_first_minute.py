"""What loads when, by lists of modules and not by the clock: help and `import consenso` load nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("numpy", "scipy", "sklearn", "numba", "polars", "pandas", "networkx", "matplotlib", "opendp", "dp_accounting")
LISTED = f"import json; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"


def loaded_by(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{LISTED}"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_help_and_import_load_nothing_heavy() -> None:
    every_command = (
        "import consenso\n"
        "from consenso.cli import build\n"
        "from typer.main import get_command\n"
        "for command in get_command(build()).commands.values(): command.params"
    )
    assert loaded_by(every_command) == []


def test_a_first_fit_loads_no_compiler_and_no_statistics() -> None:
    """Each of these takes longer to load than the fit; scipy.stats is there again for whoever asks for it."""
    fit = (
        "import numpy as np\n"
        "from consenso import PrivateLogisticRegression\n"
        "X = np.linspace(-1, 1, 60).reshape(-1, 2)\n"
        "model = PrivateLogisticRegression(row_bound=2, classes=[0, 1]).fit(X, [0, 1] * 15)\n"
        "assert model.score(X, [0, 1] * 15) >= 0 and model.card_.sentence()\n"
        "assert not {'scipy.stats', 'sklearn.metrics', 'sklearn.linear_model'} & set(sys.modules)"
    )
    then = "\nimport scipy\nassert scipy.stats.norm.cdf(0) == 0.5"
    found = set(loaded_by(fit + then))
    assert found <= {"numpy", "scipy", "sklearn", "opendp", "pandas"}, "scikit-learn imports pandas where it is there"
