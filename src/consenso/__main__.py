"""`python -m consenso` is the command line."""

from __future__ import annotations

from consenso.cli import main

if __name__ == "__main__":
    main()
