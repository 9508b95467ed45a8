"""What the record of a deployed run says of parties that did not answer."""

from __future__ import annotations

import pytest

from consenso.deployment.outcome import COMPLETE, RECORD, SAMPLED, keep_model, read_kept_model, record_of
from consenso.errors import InputError
from consenso.study import Study
from consenso.study.folder import RunFolder

STUDY = """
title = "who was away"
[data]
dataset = "breast_cancer"
[model]
loss = "logistic"
regularizer = {{ kind = "l2", strength = 0.1 }}
[privacy]
epsilon = 1.0
delta = 1e-5
unit = "party"
seed = 1
[setting]
kind = "federated"
algorithm = "DualConsensusADMM"
parameters = {{ level = "party" }}
rounds = 8
{setting}
[setting.split]
kind = "equal"
parties = 6
"""
SECURE = 'trust = "secure-sum"\ncolluders = 2'
POISSON = 'schedule = {kind = "poisson", rate = 0.9}'


def say(setting: str, missing: dict[str, list[int]]) -> str:
    return record_of(Study.parse(STUDY.format(setting=setting)), rounds=8, run="r", missing=missing)["guarantee"]


@pytest.mark.parametrize("setting", [SECURE, f"{SECURE}\n{POISSON}"], ids=["everyone", "sampled"])
@pytest.mark.parametrize(("missing", "dropped"), [({"a": [3], "b": [4]}, 1), ({"a": [3, 5], "b": [5]}, 2)])
def test_who_dropped_out_of_a_secure_sum_counts_among_those_who_may_work_with_the_server(
    setting, missing, dropped
) -> None:
    said = say(setting, missing)
    assert f"at most {dropped} of them in one" in said
    assert "lets 2 parties, counted together, drop out or work with the server" in said
    assert f"its guarantee holds if no more than {2 - dropped} of the others" in said
    assert say(setting, {}) == COMPLETE


def test_who_is_away_from_a_sample_with_noise_on_messages_is_not_in_it() -> None:
    assert say(f'trust = "local"\n{POISSON}', {"a": [3]}) == SAMPLED


@pytest.mark.parametrize("rounds", [3, None])
def test_a_model_is_handed_again_where_the_number_of_its_rounds_is_a_secret(rounds, tmp_path) -> None:
    folder = RunFolder(path=tmp_path)
    folder.write_json(RECORD, {"rounds": rounds})
    keep_model(folder, b"model")
    assert read_kept_model(folder) == (b"model", rounds)
    folder.write_json(RECORD, {"rounds": "three"})
    with pytest.raises(InputError, match="a run is complete there"):
        read_kept_model(folder)
