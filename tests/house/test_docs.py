"""The documentation is true: its code runs, its links lead somewhere, generated parts are fresh."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import runpy
import shutil
import sys
import types
from typing import TYPE_CHECKING, Any, Final

import pytest

import neardup as nd
from commands import Here
from pages import DOCS, FENCE, PAGES
from suite import ROOT, TESTS

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE: Final = DOCS / "reference"
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
UNICODE_DATA: Final = TESTS / "features" / "unicode-16.0.0.json"
DOCTEST_OPTIONS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

NEWS: Final = """\
{"id": "a1", "title": "Harbour", "text": "The harbour opened again on Monday after three days."}
{"id": "a2", "title": "Port", "text": "the harbour opened again on Monday -- after three days!"}
{"id": "a3", "title": "Budget", "text": "The council agreed on a budget for the coming year."}
{"id": "a4", "title": "Blank", "text": ""}
"""


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return [body for kind, body in FENCE.findall(page.read_text("utf-8")) if kind == language]


def pages_with(language: str) -> list[Any]:
    """The pages that have such blocks, named by their path."""
    return [
        pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in PAGES if blocks(p, language)
    ]


def tool(name: str) -> Any:
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))  # for what a tool imports from its neighbours
        spec.loader.exec_module(module)
    return module


def run_python(page: Path) -> dict[str, Any]:
    """Run a page's Python blocks in one namespace; sessions must print what they show."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    runner = doctest.DocTestRunner(verbose=False, optionflags=DOCTEST_OPTIONS)
    for body in blocks(page, "python"):
        if body.startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(body, {}, page.name, str(page), 0)
            session.globs = namespace
            messages: list[str] = []
            runner.run(session, out=messages.append, clear_globs=False)
            assert not runner.failures, "".join(messages)
        else:
            exec(compile(body, str(page), "exec"), namespace)  # noqa: S102
    return namespace


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run_and_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(UNICODE_DATA, tmp_path)
    monkeypatch.chdir(tmp_path)
    run_python(page)


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_succeed_and_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    (tmp_path / "news.jsonl").write_text(NEWS, "utf-8")
    here = Here(tmp_path, monkeypatch, capfd)
    for body in blocks(page, "console"):
        for command, expected in commands(body):
            printed, _ = here.shell(command)
            checked = doctest.OutputChecker().check_output(expected, printed, DOCTEST_OPTIONS)
            assert checked, f"{command}: {printed!r}, documented is {expected!r}"


def commands(body: str) -> list[tuple[str, str]]:
    """(command, its documented output) of a console block."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)
    assert not parts[0], "a console block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def targets(page: Path) -> list[tuple[Path, str]]:
    """(file, anchor) of each link that stays in the project."""
    result = []
    for link in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            result.append(((page.parent / path).resolve() if path else page, anchor))
    return result


@pytest.mark.parametrize("page", [pytest.param(p, id=p.name) for p in PAGES])
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for path, anchor in targets(page):
        assert path.exists(), path
        assert not anchor or anchor in anchors(path), f"{path}#{anchor}"


def test_the_readme_of_the_package_has_no_link_into_the_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    monkeypatch.setattr(interface, "MetadataHookInterface", object, raising=False)
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    build = runpy.run_path(str(ROOT / "hatch_build.py"))
    text = build["standing_alone"]((ROOT / "README.md").read_text("utf-8"))
    assert [link for link in LINK.findall(text) if "://" not in link] == []
    assert "pip install neardup" in text
    assert "https://github.com/aboutcode-org/scancode-toolkit" in LINK.findall(text)


def test_every_page_is_reached_from_the_map() -> None:
    reached, waiting = set(), [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += [path for path, _ in targets(page) if path.suffix == ".md"]
    assert not [page for page in PAGES if page not in reached]


def test_the_house_is_drawn_as_it_is() -> None:
    package = ROOT / "src" / "neardup"
    drawn = (DOCS / "design" / "house.md").read_text("utf-8").split("```")[1]
    rooms = {x.name for x in package.iterdir() if x.is_dir() and x.name != "__pycache__"}
    assert set(re.findall(r"^  (\w+)/ ", drawn, re.MULTILINE)) == rooms
    shelves = {x.parent for x in package.glob("*/*/__init__.py") if "kernels" not in x.parts}
    named = re.findall(r" (\w+)/(?=[:,\n])", drawn)
    assert sorted(named) == sorted(x.name for x in shelves)


def test_the_command_line_reference_is_fresh() -> None:
    fresh = tool("cli_reference").reference()
    assert (REFERENCE / "cli.md").read_text("utf-8") == fresh, "run python tools/cli_reference.py"


def test_the_cells_of_the_notebook_give_what_it_shows() -> None:
    module, file = tool("notebook"), DOCS / "guide" / "tutorial.ipynb"
    stored = json.loads(file.read_text("utf-8"))
    assert module.executed(stored) == stored, "run python tools/notebook.py"


@pytest.mark.parametrize("name", sorted(tool("figures").figures()))
def test_the_figures_are_fresh(name: str) -> None:
    drawn = (DOCS / "design" / "figures" / name).read_text("utf-8")
    assert drawn == tool("figures").figures()[name], "run python tools/figures.py"


def test_the_vectors_are_those_of_the_oracle_and_stand_in_the_page() -> None:
    module = tool("recipe_vectors")
    vectors = module.compute(module.load_oracle())
    assert json.loads((REFERENCE / "vectors.json").read_text("ascii")) == vectors
    assert module.table(vectors) in (REFERENCE / "recipe.md").read_text("utf-8")


def test_package_and_program_of_the_page_give_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(UNICODE_DATA, tmp_path)
    monkeypatch.chdir(tmp_path)
    program = run_python(REFERENCE / "recipe.md")["fingerprint"]
    stored = json.loads((REFERENCE / "vectors.json").read_text("ascii"))
    for name, fields in stored["recipes"].items():
        recipe = nd.Recipe(**fields)
        for row in stored["vectors"]:
            expected = None if row[name] is None else int(row[name], 16)
            assert program(row["text"], fields) == expected, row
            assert nd.fingerprint(row["text"], recipe) == expected, row


def test_the_numbers_of_the_demo_are_right() -> None:
    plot = tool("distance_plot")
    texts = plot.read_texts()
    similarities = plot.jaccard(texts)
    near, others = plot.histograms(texts, similarities)
    drawn = plot.picture(near, others, len(texts))
    assert (REFERENCE / "distances.svg").read_text("utf-8") == drawn

    table = (REFERENCE / "fingerprints.md").read_text("utf-8")
    for bits in (3, 6, 8, 12):
        result = (int(count[: bits + 1].sum()) for count in (near, others))
        assert "| {} bits | {:,} | {:,} |".format(bits, *result) in table
    for page in (table, (ROOT / "README.md").read_text("utf-8")):
        assert f"{near.sum():,}" in page
        assert f"{others.sum():,}" in page

    table = (DOCS / "guide" / "dedup.md").read_text("utf-8")
    for option, chosen in (
        ("distance 3", {"distance": 3}),
        ("similarity 0.8", {"similarity": 0.8}),
    ):
        kept = (nd.dedup(texts, policy=p, **chosen).summary.kept for p in ("greedy", "components"))
        assert "| `--{}` | {:,} | {:,} |".format(option, *kept) in table
    groups = nd.dedup(texts, similarity=plot.NEAR).cluster.tolist()
    assert groups == greedy_by_comparing(similarities >= plot.NEAR)


def greedy_by_comparing(matches: Any) -> list[int]:
    """For each row the first kept one that it matches, by looking at every kept one."""
    kept: list[int] = []
    kept_of = []
    for row, matched in enumerate(matches):
        kept_of.append(next((k for k in kept if matched[k]), row))
        if kept_of[-1] == row:
            kept.append(row)
    return kept_of


def test_every_option_that_is_named_exists() -> None:
    reference = (REFERENCE / "cli.md").read_text("utf-8")
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", reference))
    options_of_pages = options | {
        "--help",
        "--version",
        "--peer-python",
        "--quick",
        "--check",
        "--where",
        "--rounds",
        "--minutes",
        "--install-completion",
        "--no-cache-dir",
        *("--record", "--ends"),  # of tools/mutants.py
        "--strict",  # mypy's
        *("--retry", "--retry-connrefused"),  # curl's
        *("--recursive", "--level", "--warc-file", "--delete-after", "--no-directories"),  # wget's
        *(
            "--path",
            "--data",
            "--split",
            "--column",
            "--threshold",
            "--min",
            "--cache",
        ),  # text-dedup's
    }
    for page in PAGES:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text("utf-8")))
        assert not named - options_of_pages, page


def test_every_test_and_file_that_is_named_exists() -> None:
    folders = ("src", "tests", "tools", "bench", "docs")
    sources = [*ROOT.glob("*.py"), *(p for name in folders for p in (ROOT / name).rglob("*.py"))]
    tests = "".join(p.read_text("utf-8") for p in sources if TESTS in p.parents)
    files = {p.relative_to(ROOT).as_posix() for p in sources}
    for page in PAGES:
        text = page.read_text("utf-8")
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in tests, (page, name)
        for name in re.findall(r"`([\w/]+\.py)`", text):
            assert any(f"/{file}".endswith(f"/{name}") for file in files), (page, name)
