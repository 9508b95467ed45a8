"""The rules, one file each."""

from __future__ import annotations

from consenso.lint.notice import Rule
from consenso.lint.rules.best_on_test import RULE as BEST_ON_TEST
from consenso.lint.rules.data_bound import RULE as DATA_BOUND
from consenso.lint.rules.fixed_seed import RULE as FIXED_SEED
from consenso.lint.rules.free_tuning import RULE as FREE_TUNING
from consenso.lint.rules.private_metric import RULE as PRIVATE_METRIC

RULES: tuple[Rule, ...] = (FIXED_SEED, DATA_BOUND, BEST_ON_TEST, PRIVATE_METRIC, FREE_TUNING)
