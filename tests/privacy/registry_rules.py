"""The rules of the public registry of deployments, written down from its documentation and schema.

A record has a slug made of its name, its curators and its year, a status, a tier, and a deployment with the parts
below. Of every part all keys are listed; those in REQUIRED must be there. Texts are quoted or literal, never folded.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

import yaml

TEXT, NUMBER = "text", "number"
STATUS = (
    "Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)",
    "Approved (Pending)",
)  # fmt: skip
PRODUCTS = (
    "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries",
)  # fmt: skip
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
PARTS: dict[str, dict[str, Any]] = {
    "basic": {
        "name": TEXT, "data_curators": [TEXT], "intended_use": TEXT, "data_product_type": PRODUCTS,
        "data_product_region": TEXT, "description": TEXT, "publication_date": "date", "data_product_sector": SECTORS,
    },
    "dp_variant": {"variant_name": VARIANTS, "data_domain": TEXT, "unprotected_quantities": TEXT},
    "privacy_loss": {
        "privacy_unit": TEXT, "privacy_unit_details": TEXT, "privacy_parameters_details": TEXT,
        "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
    },
    "deployment_model": {
        "model_name": ("Local", "Central", "Shuffle", "Federated", "Varies"), "model_name_details": TEXT,
        "actors": TEXT, "release_type": ("One release", "Many releases"), "release_type_details": TEXT,
        "data_source_type": ("Static", "Dynamic"), "data_source_type_details": TEXT,
        "access_type": ("Interactive", "Non-interactive"), "access_type_details": TEXT,
    },
    "accounting": {"post_processing": TEXT, "composition": TEXT},
    "implementation": {"preprocessing_and_hyperparameter_tuning": TEXT, "mechanisms": TEXT, "justification": TEXT},
    "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": [TEXT]},
}  # fmt: skip
REQUIRED = {
    "basic": set(PARTS["basic"]) - {"data_product_sector"},
    "administrative": {"registry_authors"},
}


def broken_rules(text: str) -> list[str]:
    """Every rule that a record does not keep."""
    record = yaml.safe_load(text)
    found = [f"{key}: missing" for key in ("url_slug", "status", "tier", "deployment") if key not in record]
    found += [f"{key}: unknown" for key in record if key not in ("url_slug", "status", "tier", "deployment")]
    if record.get("status") not in STATUS or record.get("tier") not in (1, 2, 3):
        found.append("status or tier: not one of the choices")
    parts = record.get("deployment", {})
    found += [f"{name}: unknown part" for name in parts if name not in PARTS]
    for name, rules in PARTS.items():
        part = parts.get(name)
        if part is None:
            found += [f"{name}: missing"] if name == "basic" else []
            continue
        found += [f"{name}.{key}: missing" for key in REQUIRED.get(name, ()) if key not in part]
        found += [line for key, value in part.items() for line in _faults(f"{name}.{key}", value, rules.get(key))]
    if not found and record["url_slug"] != _slug(parts["basic"]):
        found.append("url_slug: not made of name, curators and year")
    styles = {token.style for token in yaml.scan(text) if hasattr(token, "style")}
    return found + [f"a text in style {style!r}" for style in styles - {None, "|", '"', "'"}]


def _faults(where: str, value: Any, rule: Any) -> list[str]:
    if rule is None:
        return [f"{where}: unknown"]
    if isinstance(rule, dict):
        return [line for key, inner in value.items() for line in _faults(f"{where}.{key}", inner, rule.get(key))]
    if isinstance(rule, list):
        fine = isinstance(value, list) and len(value) > 0 and all(isinstance(each, str) for each in value)
    elif isinstance(rule, tuple):
        fine = value in rule
    elif rule == NUMBER:
        fine = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        fine = isinstance(value, str) and (rule != "date" or _is_date(value))
    latex = isinstance(value, str) and re.search(r"\\\\[^()]", value)
    return ([] if fine else [f"{where}: {value!r}"]) + ([f"{where}: two backslashes"] if latex else [])


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _slug(basic: dict[str, Any]) -> str:
    parts = (basic["name"], "-".join(basic["data_curators"]), basic["publication_date"].split("-")[0])
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")
