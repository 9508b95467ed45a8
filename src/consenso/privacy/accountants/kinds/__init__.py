"""What each kind of event costs: a file for each law, found when the accountants are imported.

A file answers the questions of `consenso.privacy.accountants.costs` for its event. Compositions, repeats and mixtures
are no kinds: accountants open them (`parts`, `renyi`, `pairs`).
"""

from __future__ import annotations

import importlib
import pkgutil

for _each in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_each.name}")
