"""Measure neardup side by side with its peers: `python bench/run.py [--quick] [NAME...]`.

Run it with the interpreter that neardup is installed for. Every measurement is a process of its
own; the measurements of a case take turns, A B A B, and medians are compared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import corpora, environments, records, report
from harness.model import OURS, Measurement, Row

HERE = Path(__file__).resolve().parent
CASES = tuple(sorted(path.stem for path in (HERE.parent / "cases").glob("[a-z]*.py")))
LIMIT_SECONDS = 1_800


def main() -> int:
    """Run the cases, print the table, keep the results; 1 where a measurement failed."""
    arguments = parse()
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
        found, outcomes = measured(name, arguments)
        lines += found
        failed = failed or any("error" in result for x in outcomes.values() for result in x)
        if kept:
            facts["peers"] = peer_versions(outcomes)
            value = report.recorded(found, outcomes, texts_used(outcomes))
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
    parser.add_argument("--only", choices=("ours", "peers"), help="one side, not kept")
    parser.add_argument(
        "--peer-python", default=sys.executable, help="interpreter for the peers' environments"
    )
    arguments = parser.parse_args()
    arguments.names = [name.replace("-", "_") for name in arguments.names]
    if unknown := sorted(set(arguments.names) - set(CASES)):
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    return arguments


def measured(name: str, arguments: argparse.Namespace) -> tuple[list[report.Line], report.Outcomes]:
    """The lines of a case, and each single measurement."""
    module = importlib.import_module(f"cases.{name}")
    rows: list[Row] = module.rows(arguments.quick)
    rounds = min(arguments.rounds, getattr(module, "MOST_ROUNDS", arguments.rounds))
    outcomes: report.Outcomes = {}
    measure(rows, arguments, outcomes, rounds)
    return [report.line_of(row, outcomes, not arguments.quick) for row in rows], outcomes


def measure(
    rows: list[Row], arguments: argparse.Namespace, outcomes: report.Outcomes, rounds: int
) -> None:
    """Run every measurement that the rows need, in turn; one that failed is not tried again."""
    wanted = dict.fromkeys(side for row in rows for side in (row.ours, *row.against))
    for measurement in wanted:
        outcomes.setdefault(measurement, [])
    left_out = {None: (), "ours": (False,), "peers": (True,)}[arguments.only]
    for round_ in range(rounds):
        for measurement in wanted:
            results = outcomes[measurement]
            if (measurement.environment == OURS) in left_out or any("error" in r for r in results):
                continue
            progress(f"{round_ + 1}/{rounds} {measurement.case} {measurement.function}")
            results.append(run(measurement, arguments.peer_python))
            progress(f" {measurement.options}: {shown(results[-1])}\n")


def shown(result: dict[str, Any]) -> str:
    value = result.get("value")
    return result["error"] if value is None else f"{value:.4g}"


def progress(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def run(measurement: Measurement, peer_python: str) -> dict[str, Any]:
    """The dict that a worker printed, or {"error": its last line}."""
    try:
        python = environments.python_of(measurement.environment, peer_python)
    except RuntimeError as error:
        return {"error": str(error)}
    worker = [measurement.case, measurement.function, measurement.options]
    command = [python, str(HERE / "worker.py"), *worker]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {LIMIT_SECONDS} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def peer_versions(outcomes: report.Outcomes) -> dict[str, str]:
    """What was installed in each environment that was used."""
    used = {measurement.environment for measurement, found in outcomes.items() if found} - {OURS}
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
