"""The look that every page shares: one style for phone, screen, dark, light and paper; nothing from the network.

What a page says belongs to the room that makes it: reports, the explorer, the live page of a federation.
"""

from __future__ import annotations

from consenso.pages.style import STYLE, figures, page, table, verdict

__all__ = ["STYLE", "figures", "page", "table", "verdict"]
