"""Change the source a little and see whether a test fails: `make mutants`.

1. Copy the checkout: mutants never touch it.
2. Run the tests of the rooms once, and record which lines each test runs, in child processes too.
3. Draw mutants of a room by seed: a place in the source first, then one of the changes that Cosmic
   Ray knows there. A change of annotations alone is none.
4. Run each mutant with the tests that run its statement until one fails: first those that are
   quick and run little else. A processor limit ends what loops.

Each run is forked from this process, which has imported the libraries and nothing of neardup. The
score and the survivors, as diffs, are what it prints; docs/contributing/releases.md has the table.
In the file of `--ends`, write `equivalent` in place of `survives` where a mutant changes no result.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import functools
import hashlib
import itertools
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).resolve().parent.parent

IN_KERNELS: Final = ("kernels", "features", "fingerprinting", "hamming", "similarity", "index")
ROOMS: Final = {
    "kernels": (*IN_KERNELS, "documents", "contamination", "compat"),
    "hamming": ("hamming", "index"),
    "similarity": ("similarity", "index"),
    "index": ("index",),
    "pipeline": ("pipeline", "contamination", "cli"),
    "service": ("service",),
    "contamination": ("contamination",),
    "documents": ("documents", "pipeline"),
}
"""Rooms of the source, and the folders of tests that should notice a change of each."""
COMPILED: Final = ("index", "pipeline", "service", "contamination", "documents")
"""Rooms whose tests run compiled kernels, since many of them run with these only."""
BESIDE: Final = {"cache.py", "jit.py", "linked.py", "lowering.py", "passes.py", "entry.py"}
"""Of the kernels: how they are compiled, which plain Python leaves out."""
LEFT_OUT: Final = (
    "RemoveDecorator",  # plain kernels have none, and few others would start
    "VariableReplacer",  # they take arguments: which variable
    "VariableInserter",
    "Eq_Is",  # the same for small numbers, and a warning for others
    "Eq_IsNot",
)
CHILD_LINES: Final = "tools/child_lines"
"""The folder of a `sitecustomize.py` that records what child processes run."""
FAILURES: Final = ("FAILED tests", "ERROR tests")
"""Lines of pytest's summary; a log has others that begin with ERROR."""
MEMORY: Final = 6 << 30
"""Bytes that a mutant may allocate."""


@dataclass(frozen=True)
class Mutant:
    """One change: a file, an operator of Cosmic Ray, and which of its places there."""

    path: Path
    operator: str
    occurrence: int


@dataclass(frozen=True)
class Tests:
    """Tests by number with their seconds, and the numbers of those that run a line of a file."""

    names: list[str]
    seconds: list[float]
    lines: dict[str, dict[str, list[int]]]

    @functools.cached_property
    def costs(self) -> list[float]:
        """The seconds of each test times the lines that it runs: specific tests notice more."""
        runs = (tests for lines in self.lines.values() for tests in lines.values())
        sizes = Counter(itertools.chain.from_iterable(runs))
        return [seconds * sizes[number] for number, seconds in enumerate(self.seconds)]


@dataclass(frozen=True)
class Ends:
    """What became of mutants, and the file that keeps it where there is one."""

    file: Path | None
    by_digest: dict[str, str]

    def add(self, digest: str, end: str) -> None:
        """Keep the end of a mutant."""
        self.by_digest[digest] = end
        if self.file:
            with self.file.open("a", encoding="utf8") as file:
                file.write(json.dumps([digest, end]) + "\n")


def main() -> None:
    """Draw, run, print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("rooms", nargs="+", choices=ROOMS, metavar="room", help=", ".join(ROOMS))
    options.add_argument("--count", type=int, default=300, help="of mutants in each room")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--quick", action="store_true", help="leave out what is in slow.txt")
    options.add_argument("--seconds", type=int, default=60, help="of the tests of one mutant")
    options.add_argument("--again", action="store_true", help="try known survivors again")
    options.add_argument("--record", type=Path, help="file of which tests run what, to run again")
    options.add_argument("--ends", type=Path, help="file of what became of mutants, to go on from")
    given = options.parse_args()
    compiled = {room in COMPILED for room in given.rooms}
    if len(compiled) > 1:
        options.error(f"{' and '.join(COMPILED)} need compiled kernels: run them apart")
    os.environ["NUMBA_DISABLE_JIT"] = "0" if compiled == {True} else "1"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    import_libraries()
    with tempfile.TemporaryDirectory(prefix="neardup-mutants-") as folder:
        copy = copy_checkout(Path(folder) / "neardup")
        os.environ["PYTHONPATH"] = str(copy / "src")
        folders = sorted({each for room in given.rooms for each in ROOMS[room]})
        tests = recorded(given.record or copy.parent / "record", copy, folders, given.quick)
        print(f"{len(tests.names)} tests", flush=True)
        known = ends_in(given.ends)
        for room in given.rooms:
            mutants = draw(files_of(copy, room), given.count, random.Random(given.seed))
            ends = [try_one(copy, each, tests, known, given) for each in mutants]
            print(row(room, ends), flush=True)


def ends_in(file: Path | None) -> Ends:
    """What became of the mutants of earlier runs, by digest of their source."""
    lines = file.read_text("utf8").splitlines() if file and file.exists() else []
    return Ends(file, dict(map(json.loads, lines)))


def try_one(copy: Path, mutant: Mutant, tests: Tests, ends: Ends, given: argparse.Namespace) -> str:
    """Try a mutant unless its end is known, and say what became of it."""
    digest = hashlib.sha256("".join(mutate(mutant)).encode("utf8")).hexdigest()
    end = ends.by_digest.get(digest)
    if end is None or (given.again and end.startswith("survives")):
        end = try_mutant(copy, mutant, tests, given.seconds)
        ends.add(digest, end)
        print(end, flush=True)
    return end


def row(room: str, ends: list[str]) -> str:
    """A row of the table: mutants, those that a test noticed, equivalent and open ones."""
    counts = Counter(end.partition(" ")[0] for end in ends)
    equivalent, survivors = counts["equivalent"], counts["survives"]
    noticed = len(ends) - equivalent - survivors
    return f"| {room} | {len(ends)} | {noticed} | {equivalent} | {survivors} |"


def import_libraries() -> None:
    """Import what tests and source import, so that a fork has it."""
    import hypothesis  # noqa: F401
    import lmdb  # noqa: F401
    import numba  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401


def copy_checkout(to: Path) -> Path:
    """Copy the files that Git knows, with what is compiled beside them."""
    listing = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    names = [name for name in listing.split("\0") if name and (ROOT / name).exists()]
    kernels = (ROOT / "src/neardup/kernels/__pycache__").glob("*.nb[ic]")
    for name in [*names, *(str(each.relative_to(ROOT)) for each in kernels)]:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
    return to


def files_of(copy: Path, room: str) -> list[Path]:
    """The files of a room that are changed."""
    folder = copy / "src/neardup" / room
    return [path for path in sorted(folder.rglob("*.py")) if path.name not in BESIDE]


def draw(files: list[Path], count: int, chance: random.Random) -> list[Mutant]:
    """Draw places without repetition, and one change of each."""
    places = [each for path in files for each in changes(path).values()]
    chance.shuffle(places)
    mutants = (chance.choice(place) for place in places)
    real = (mutant for mutant in mutants if changes_code(mutant))
    return [mutant for mutant, _ in zip(real, range(count), strict=False)]


def changes(path: Path) -> dict[Any, list[Mutant]]:
    """The mutants of a file, by place."""
    from cosmic_ray.ast import ast_nodes, get_ast

    nodes = list(ast_nodes(get_ast(path.read_text("utf8"))))
    places = defaultdict(list)
    for name, operator in operators().items():
        positions = (each for node in nodes for each in operator.mutation_positions(node))
        for occurrence, position in enumerate(positions):
            places[position].append(Mutant(path, name, occurrence))
    return places


@functools.cache
def operators() -> dict[str, Any]:
    """Cosmic Ray's operators that are used here."""
    from cosmic_ray.plugins import get_operator, operator_names

    names = (name for name in sorted(operator_names()) if not name.endswith(LEFT_OUT))
    return {name: get_operator(name)() for name in names}


def mutate(mutant: Mutant) -> tuple[str, str]:
    """The source of a file, before and after."""
    from cosmic_ray.mutating import mutate_code

    before = mutant.path.read_text("utf8")
    return before, mutate_code(before, operators()[mutant.operator], mutant.occurrence)


class WithoutTypes(ast.NodeTransformer):
    """Drop what runs in no process: annotations and imports for them."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        is_type = "TYPE_CHECKING" in ast.dump(node.test)
        return ast.Pass() if is_type else self.generic_visit(node)


def changes_code(mutant: Mutant) -> bool:
    """Whether a mutant is Python (`-` for a lone `*` is none) and differs beside annotations."""
    try:
        before, after = (ast.dump(WithoutTypes().visit(ast.parse(text))) for text in mutate(mutant))
    except (SyntaxError, AttributeError):  # Cosmic Ray fails at an exception like `lmdb.Error`
        return False
    return before != after


def recorded(file: Path, copy: Path, folders: list[str], quick: bool) -> Tests:
    """Read which tests run what; where there is no such file, run them and write it."""
    if not file.exists():
        record(file.resolve(), copy, [f"tests/{each}" for each in folders], quick=quick)
    return Tests(**json.loads(file.read_bytes()))


def record(file: Path, copy: Path, folders: list[str], *, quick: bool) -> None:
    """Run the tests of some folders and write what each of them runs."""

    def run() -> int:
        import coverage

        meter = coverage.Coverage(data_file=None, include=[f"{copy}/src/*"])
        recorder = Recorder(meter.switch_context, copy)
        meter.start()
        pytest_main([*folders, *(["--quick"] if quick else [])], [recorder])
        meter.stop()
        data = meter.get_data()
        passing = {k: v for k, v in recorder.seconds.items() if k not in recorder.failing}
        numbers = {name: number for number, name in enumerate(passing)}
        lines: Any = defaultdict(lambda: defaultdict(set))
        for name in data.measured_files():
            for line, contexts in data.contexts_by_lineno(name).items():
                lines[name][line].update(numbers[each] for each in contexts if each in numbers)
        for test, name, line in recorder.child_lines():
            if test in numbers:
                lines[name][line].add(numbers[test])
        short = {str(Path(name).relative_to(copy)): each for name, each in lines.items()}
        result = {"names": list(passing), "seconds": list(passing.values()), "lines": short}
        file.write_text(json.dumps(result, default=sorted), "utf8")
        return 0

    code, output = in_fork(run, copy, limit=3600)
    if code:
        sys.exit(f"the tests end with {code}:\n{output}")
    for line in output.splitlines():
        if line.startswith(FAILURES):
            print(f"left out, since it fails without a mutant: {line}")


class Recorder:
    """A plugin of pytest: a context of coverage for each test, and its seconds.

    Child processes read the number of the test that runs in a file which they map, and write down
    lines next to it.
    """

    def __init__(self, switch: Callable[[str], None], copy: Path) -> None:
        self.switch = switch
        self.folder = copy.parent / "child_lines"
        self.folder.mkdir()
        (self.folder / "lines").touch()
        (self.folder / "test").write_bytes(bytes(4))
        with (self.folder / "test").open("r+b") as file:
            self.number = mmap.mmap(file.fileno(), 4)
        os.environ["CHILD_LINES"] = f"{copy / 'src'}:{self.folder}"
        os.environ["PYTHONPATH"] = f"{copy / CHILD_LINES}:{os.environ['PYTHONPATH']}"
        self.seconds: dict[str, float] = {}
        self.failing: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.switch(nodeid)
        self.number[:] = len(self.seconds).to_bytes(4, "little")
        self.seconds[nodeid] = sum(os.times()[:4])

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.switch("")
        self.seconds[nodeid] = sum(os.times()[:4]) - self.seconds[nodeid]

    def child_lines(self) -> Iterator[tuple[str, str, int]]:
        """Test, file and line of what child processes ran."""
        names = list(self.seconds)
        lines = (self.folder / "lines").read_text("utf8")
        for number, line, path in re.findall(r"^(\d+) (\d+) (/.+\.py)$", lines, re.MULTILINE):
            yield names[int(number)], path, int(line)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failing.add(report.nodeid)


def pytest_main(arguments: list[str], plugins: list[object]) -> int:
    """Run tests in this process, with the same examples each time."""
    import pytest

    settings = ["-p", "no:cacheprovider", "--hypothesis-seed=0", "--basetemp=../pytest"]
    settings += ["-W", "ignore:Module already imported"]  # by import_libraries
    return int(pytest.main([*settings, *arguments], plugins))


def try_mutant(copy: Path, mutant: Mutant, tests: Tests, most: int) -> str:
    """Run a mutant: what ended it, or that it survives, and then its diff.

    The last of its tests are left out where all together would take longer than `most` seconds.
    """
    before, after = mutate(mutant)
    able = chosen_tests(str(mutant.path.relative_to(copy)), before, after, tests)
    sums = itertools.accumulate(tests.seconds[number] for number in able)
    chosen = [number for number, total in zip(able, sums, strict=True) if total < most]
    mutant.path.write_text(after, "utf8")
    end = "survives"
    if chosen:
        seconds = sum(tests.seconds[number] for number in chosen)
        end = run_tests(copy, [tests.names[number] for number in chosen], limit=20 + 2 * seconds)
    mutant.path.write_text(before, "utf8")
    if end == "survives":
        diff = difference(copy, mutant.path, before, after)
        end = f"survives {len(chosen)} of {len(able)} tests\n{diff}"
    return end


def chosen_tests(path: str, before: str, after: str, tests: Tests) -> list[int]:
    """The tests that run the statement which a change is in, the cheapest first."""
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    number = next(i for i, (old, new) in enumerate(lines, 1) if old != new)
    runs = tests.lines.get(path, {})
    chosen = {each for line in statement(before, number) for each in runs.get(str(line), ())}
    return sorted(chosen, key=tests.costs.__getitem__)


def statement(source: str, line: int) -> range:
    """The lines of the smallest statement that has a line; all lines for one outside functions."""
    tree = ast.parse(source)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in around):
        return range(1, source.count("\n") + 2)
    return min((range(x.lineno, (x.end_lineno or 0) + 1) for x in around), key=len)


def run_tests(copy: Path, names: list[str], limit: float) -> str:
    """Run tests until one fails, and say so."""
    code, output = in_fork(lambda: pytest_main(["-x", *names], []), copy, limit)
    if code == 0:
        return "survives"
    failed = (line for line in output.splitlines() if line.startswith(FAILURES))
    return next(failed, f"ends with {code}")


def difference(copy: Path, path: Path, before: str, after: str) -> str:
    """What a mutant changes."""
    name = str(path.relative_to(copy))
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), name, lineterm="")
    return "\n".join(diff)


def in_fork(work: Callable[[], int], folder: Path, limit: float) -> tuple[int, str]:
    """Do some work in a process of its own with so many seconds of a processor."""
    output = folder.parent / "output"
    pid = os.fork()
    if pid == 0:
        prepare_fork(folder, output, int(limit))
        code = 1
        try:
            code = work()
        except Exception:  # noqa: BLE001 - the parent prints it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = wait(pid, 30 + 2 * limit)
    return code, output.read_text("utf8", errors="replace")


def prepare_fork(folder: Path, output: Path, limit: int) -> None:
    """Set what a fork may use, and where it runs and prints."""
    os.setsid()
    os.chdir(folder)
    sys.path.insert(0, str(folder / "src"))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    file = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(file, 1)
    os.dup2(file, 2)


def wait(pid: int, limit: float) -> int:
    """Wait for a process, and end it and what it has started."""
    try:
        for _ in steps(limit):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
        return -signal.SIGKILL
    finally:
        with contextlib.suppress(ProcessLookupError):  # as it should be: nothing else runs
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def steps(limit: float) -> Iterator[None]:
    """Wake up again and again until a limit."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        yield
        time.sleep(0.02)


if __name__ == "__main__":
    main()
