"""Measure neardup side by side with its peers: `python bench/run.py [--quick] [NAME...]`."""

from __future__ import annotations

import sys

from harness.run import main

if __name__ == "__main__":
    sys.exit(main())
