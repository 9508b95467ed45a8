"""Studies: one file that says what is learnt, from which table, for whom it is private, and how."""

from __future__ import annotations

from consenso.study.data import DataSection
from consenso.study.model import ModelSection
from consenso.study.output import OutputSection
from consenso.study.privacy import PrivacySection
from consenso.study.setting import SettingSection, SplitSection
from consenso.study.study import Study

__all__ = [
    "DataSection",
    "ModelSection",
    "OutputSection",
    "PrivacySection",
    "SettingSection",
    "SplitSection",
    "Study",
]
