"""Where a key of a TOML file is."""

from __future__ import annotations

import re


def line_of(text: str, key: str, *, section: str = "") -> int:
    """The line of a key of a section, counted from 1; that of the section, or 1, where it is written otherwise."""
    here, found, dotted = "", 1, re.escape(f"{section}.{key}")
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([\w.\"-]+)\s*\]+", line)
        if header:
            here = header[1]
            found = number if here == section else found
        elif re.match(rf"\s*\"?{re.escape(key)}\"?\s*=" if here == section else rf"\s*{dotted}\s*=", line):
            return number
    return found
