"""One session of Sail for all tests of a process: it starts in a second, and is theirs alone."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

from neardup import spark
from spark_cases import DOCUMENTS, engine_or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    engine_or_skip("sail")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with spark.open_session("sail") as opened:
            yield opened


@pytest.fixture(scope="session")
def frame(session: Any) -> Any:
    return session.createDataFrame(DOCUMENTS)
