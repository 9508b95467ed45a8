"""Bounds of docs/privacy.md that no plan states, because composing the declared releases gives them too.

They say by other means what plans must not promise more than. A bound that an algorithm yields belongs to
`consenso.privacy.theorems`; exact divergences belong to `consenso.testing.exact_values`.
"""
