"""The site: `make docs` builds it from these pages and the docstrings, with Sphinx, MyST and Furo.

Sphinx's source folder is the root of the project, so that a link is the same file here, on a code
host and in the site. The navigation is made of the links of docs/README.md: a caption for each of
its headings.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from docutils import nodes
from sphinx.addnodes import download_reference
from sphinx.util.osutil import relative_uri

import neardup

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parent.parent
HEADING: Final = re.compile(r"^## (.*)$", re.MULTILINE)
EXTRAS: Final = (
    *("datasets", "datatrove", "duckdb", "httpx"),
    *("pandas", "polars", "pyspark", "scrapy"),
)
COMMANDS: Final = re.compile(
    r"(?<=\n\n)```\n(?=(?:neardup|pip|make|python|curl|redis-cli|docker|wget|openssl|export) )"
)
"""The fence of a block of commands, which wraps on a phone; drawings and tables scroll."""
PAGE_LINK: Final = re.compile(r"\]\(([^)#\s]+)\.(?:md|ipynb)\)")

project = "neardup"
author = "the authors of neardup"
version = release = neardup.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
root_doc = "docs/README"
include_patterns = [
    *("docs/**.md", "docs/guide/*.ipynb", "bench/README.md", "bench/results/README.md"),
    "src/neardup/cli/commands/README.md",
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
]
myst_heading_anchors = 4
default_role = "code"
highlight_language = "text"  # of blocks that name none
smartquotes = False  # options and quoted values are for copying
autodoc_mock_imports = [name for name in EXTRAS if find_spec(name) is None]
autodoc_typehints = "none"  # the signature has them
autodoc_default_options = {
    "members": True,
    "inherited-members": "list,tuple,BaseException,PipelineStep,BaseFilter",  # not of these
}
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
suppress_warnings = [
    "misc.highlighting_failure",  # SQL of PostgreSQL, which has $$
    "ref.python",  # a parameter's name is the name of several attributes
]
html_theme = "furo"
html_title = f"neardup {version}"
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # it fetches pages, which a browser refuses for files on disk
html_extra_path = ["design/two-fingerprints.html", "site/index.html"]
html_static_path = ["site/phone.css"]
html_css_files = ["phone.css"]
html_theme_options = {"navigation_with_keys": True}


def navigation(start: str) -> str:
    """A hidden toctree for each heading of a page of links, each page once."""
    parts, seen = [], set()
    _, *sections = HEADING.split(start) if HEADING.search(start) else ("", "", start)
    for caption, body in zip(sections[::2], sections[1::2], strict=True):
        pages = [page for page in PAGE_LINK.findall(body) if page not in seen]
        seen.update(pages)
        if pages:
            listed = "\n".join(pages)
            named = f":caption: {caption}\n" if caption else ""
            parts.append(f"```{{toctree}}\n:hidden:\n{named}\n{listed}\n```\n")
    return "\n".join(parts)


def notebook(source: str) -> str:
    """A notebook as Markdown: its cells, and what each of them gave."""
    parts = []
    for cell in json.loads(source)["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", "")})
            html = "".join(data.get("text/html", ""))
            plain = "".join(data.get("text/plain", ""))
            parts.append(f"```{{raw}} html\n{html}\n```" if html else f"```text\n{plain}\n```")
    return "\n\n".join(parts)


def read_source(_: Sphinx, page: str, source: list[str]) -> None:
    """Turn what is no Markdown into it, and add the navigation to pages of links."""
    if (ROOT / f"{page}.ipynb").exists():
        source[0] = notebook(source[0])
    source[0] = COMMANDS.sub("```sh\n", source[0])
    source[0] = source[0].replace("\n\n```\n", "\n```\n")  # doctest needs the blank line
    if page in {root_doc, "docs/decisions/README"}:
        source[0] += "\n" + navigation(source[0])


def open_pages(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Let links to HTML files open them, where Sphinx would offer a download."""
    for link in list(doctree.findall(download_reference)):
        target = str(link["reftarget"])
        if target.endswith(".html"):
            uri = relative_uri(app.builder.get_target_uri(page), Path(target).name)
            link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", read_source)
    app.connect("doctree-resolved", open_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
