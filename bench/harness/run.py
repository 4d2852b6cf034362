"""Measure neardup side by side with its peers: `python bench/run.py [--quick] [NAME...]`.

Run it with the interpreter that neardup is installed for. Every measurement is a process of its
own; the measurements of a case take turns, A B A B, and medians are compared. With `--where` or
`--minutes` a part of a case is measured, and the rest stays as the record has it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import corpora, environments, records, report
from harness.model import EXTRAS, Measurement, Row

HERE = Path(__file__).resolve().parent
CASES = tuple(sorted(path.stem for path in (HERE.parent / "cases").glob("[a-z]*.py")))
LIMIT_SECONDS = 1_800
"""Unless a case has a LIMIT_SECONDS of its own."""


def main() -> int:
    """Run the cases, print the table, keep the results; 1 where a measurement failed."""
    arguments = parse()
    os.environ.setdefault("NUMBA_DISABLE_JIT", "0")  # commands on small inputs compile nothing
    facts = records.machine()
    names = arguments.names or CASES
    kept = not arguments.quick and not arguments.only
    if kept:
        try:
            records.check_committed(names, facts)
        except records.UncommittedRecordError as error:
            raise SystemExit(str(error)) from None
    lines: list[report.Line] = []
    failed = False
    for name in names:
        known = records.outcomes(name, facts) if kept and partial(arguments) else {}
        results, outcomes = measured(name, arguments, known)
        lines += results
        failed = failed or any("error" in result for x in outcomes.values() for result in x)
        if kept:
            facts["peers"] = peer_versions(outcomes)
            value = report.recorded(results, outcomes, texts_used(outcomes))
            progress(f"kept in {records.keep(name, facts, value)}\n")
    sys.stdout.write(report.table(lines))
    missed = arguments.check and any(line.reached is False for line in lines)
    return int(failed or missed)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"cases: {', '.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round, not kept")
    parser.add_argument("--rounds", type=int, default=None, help="rounds of each case (3)")
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    parser.add_argument(
        "--where", default="", metavar="NAME=VALUE,...", help="only measurements with these options"
    )
    parser.add_argument("--minutes", type=float, help="begin no measurement after that")
    parser.add_argument("--only", choices=("ours", "peers"), help="one side, not kept")
    parser.add_argument(
        "--peer-python", default=sys.executable, help="interpreter for the peers' environments"
    )
    arguments = parser.parse_args()
    arguments.names = [name.replace("-", "_") for name in arguments.names]
    if unknown := sorted(set(arguments.names) - set(CASES)):
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    arguments.end = time.monotonic() + 60 * (arguments.minutes or float("inf"))
    arguments.wanted = dict(each.split("=", 1) for each in arguments.where.split(",") if each)
    return arguments


def partial(arguments: argparse.Namespace) -> bool:
    """Whether the rest of a case stays as its record has it."""
    return bool(arguments.wanted or arguments.minutes)


def measured(
    name: str, arguments: argparse.Namespace, known: report.Outcomes
) -> tuple[list[report.Line], report.Outcomes]:
    """The lines of a case, and each single measurement; what is known is not measured again."""
    module = importlib.import_module(f"cases.{name}")
    rows: list[Row] = module.rows(arguments.quick)
    rounds = min(arguments.rounds, getattr(module, "MOST_ROUNDS", arguments.rounds))
    limit = getattr(module, "LIMIT_SECONDS", LIMIT_SECONDS)
    outcomes = measure(rows, arguments, rounds, limit)
    for measurement, results in outcomes.items():
        outcomes[measurement] = results or known.get(measurement, [])
    judge = not arguments.quick
    known_rows = (row for row in rows if any(outcomes[x] for x in (row.ours, *row.against)))
    return [report.line_of(row, outcomes, judge) for row in known_rows], outcomes


def measure(
    rows: list[Row], arguments: argparse.Namespace, rounds: int, limit: float
) -> report.Outcomes:
    """Run the measurements that are asked for, in turn; one that failed is not tried again."""
    sides = dict.fromkeys(side for row in rows for side in (row.ours, *row.against))
    outcomes: report.Outcomes = {measurement: [] for measurement in sides}
    left_out = {None: (), "ours": (False,), "peers": (True,)}[arguments.only]
    for round_ in range(rounds):
        for measurement, results in outcomes.items():
            if (measurement.environment in EXTRAS) in left_out or any(
                "value" not in r for r in results
            ):
                continue
            if time.monotonic() > arguments.end or not measurement.has(arguments.wanted):
                continue
            progress(f"{round_ + 1}/{rounds} {measurement.case} {measurement.function}")
            results.append(run(measurement, arguments.peer_python, limit) | records.when())
            progress(f" {measurement.options}: {shown(results[-1])}\n")
    return outcomes


def shown(result: dict[str, Any]) -> str:
    if "over" in result:
        return f"stopped after {result['over']:g} s"
    value = result.get("value")
    return result["error"] if value is None else f"{value:.4g}"


def progress(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def run(measurement: Measurement, peer_python: str, limit: float) -> dict[str, Any]:
    """The dict that a worker printed, {"error": its last line}, or {"over": the limit}."""
    try:
        python = environments.python_of(measurement.environment, peer_python)
    except RuntimeError as error:
        return {"error": str(error)}
    worker = [measurement.case, measurement.function, measurement.options]
    command = [python, str(HERE / "worker.py"), *worker]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return {"over": limit}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def peer_versions(outcomes: report.Outcomes) -> dict[str, str]:
    """What was installed in each environment that was used."""
    used = {measurement.environment for measurement, result in outcomes.items() if result} - set(
        EXTRAS
    )
    return {
        name: ", ".join(
            f"{library} {version}"
            for library, version in environments.versions(environments.python_of(name)).items()
            if library not in {"pip", "setuptools", "packaging"}
        )
        for name in sorted(used)
    }


def texts_used(outcomes: report.Outcomes) -> list[dict[str, Any]]:
    """Facts of each corpus that a measurement read."""
    paths = {json.loads(measurement.options).get("path") for measurement in outcomes}
    known = [json.loads(path.read_text("utf8")) for path in corpora.CACHE.glob("*.facts.json")]
    return sorted((facts for facts in known if facts["path"] in paths), key=lambda f: f["path"])
