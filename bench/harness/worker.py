"""One measurement in one process: `worker.py CASE FUNCTION OPTIONS` prints a JSON line."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    """Call the function and print what it returns."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # bench, not harness
    case, function, options = sys.argv[1:4]
    module = importlib.import_module(f"cases.{case}")
    result = getattr(module, function)(**json.loads(options))
    sys.stdout.write("\n" + json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
