"""Arrow streams whose columns are answered without a row each, and those that need rows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from msgspec import UNSET

import neardup as nd
from neardup.service.bodies import arrow_stream
from neardup.service.columns import Columns
from neardup.service.messages import FirstMatch, FirstMatches, Terms
from neardup.service.settings import Limits
from services import Service, words

if TYPE_CHECKING:
    from pathlib import Path

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
LIMITS = Limits(text_characters=100, id_characters=10)
BY_DISTANCE = Terms(("fingerprint",), "distance", 3, 32, LIMITS)
BY_SIMILARITY = Terms(("text", "features"), "similarity", 0.8, 64, LIMITS)
BIG = pa.array([2**63], pa.uint64())
COLUMNS: dict[str, tuple[Terms, dict[str, Any]]] = {
    "fingerprints": (BY_DISTANCE, {"id": ["a", "b"], "fingerprint": [0, 2**32 - 1]}),
    "texts": (BY_SIMILARITY, {"text": pa.array(["é" * 100], pa.large_string()), "id": [-1]}),
    "features": (BY_SIMILARITY, {"id": ["a", "b"], "features": [[], [1, 2**63 - 1]]}),
    "large features": (
        BY_SIMILARITY,
        {"id": ["a"], "features": pa.array([[2**63]], pa.list_(pa.uint64()))},
    ),
}
ROWS: dict[str, tuple[Terms, dict[str, Any]]] = {
    "no rows": (BY_DISTANCE, {"id": pa.array([], pa.string()), "fingerprint": pa.array([])}),
    "no ids": (BY_DISTANCE, {"fingerprint": [1]}),
    "a field more": (BY_SIMILARITY, {"id": ["a"], "text": ["b"], "features": [[1]]}),
    "an id that is null": (BY_DISTANCE, {"id": ["a", None], "fingerprint": [1, 2]}),
    "an id that is too long": (BY_DISTANCE, {"id": ["a" * 11], "fingerprint": [1]}),
    "an id that is large": (BY_DISTANCE, {"id": BIG, "fingerprint": [1]}),
    "a text for fingerprints": (BY_DISTANCE, {"id": ["a"], "text": ["b"]}),
    "a fingerprint below 0": (BY_DISTANCE, {"id": ["a"], "fingerprint": [-1]}),
    "a fingerprint of more bits": (BY_DISTANCE, {"id": ["a"], "fingerprint": [2**32]}),
    "a fingerprint of letters": (BY_DISTANCE, {"id": ["a"], "fingerprint": ["1"]}),
    "a text that is too long": (BY_SIMILARITY, {"id": ["a"], "text": ["a" * 101]}),
    "a feature below 0": (BY_SIMILARITY, {"id": ["a"], "features": [[1, -1]]}),
    "a feature that is null": (BY_SIMILARITY, {"id": ["a"], "features": [[1, None]]}),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_documents_of_one_form_are_columns(name: str) -> None:
    terms, documents = COLUMNS[name]
    columns = Columns.of(pa.table(documents), terms)
    assert columns is not None
    assert columns.ids.to_pylist() == pa.table(documents)["id"].to_pylist()


@pytest.mark.parametrize("name", ROWS)
def test_what_may_be_refused_needs_rows(name: str) -> None:
    terms, documents = ROWS[name]
    assert Columns.of(pa.table(documents), terms) is None


def sent(service: Service, path: str, table: pa.Table) -> list[dict[str, Any]]:
    """The answers to a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=300):
            writer.write_batch(batch)
    response = service.client.post(f"/v1/{path}", content=bytes(sink.getvalue()), headers=ARROW)
    assert response.status_code == 200, response.text
    rows: list[dict[str, Any]] = pa.ipc.open_stream(response.content).read_all().to_pylist()
    return [{name: each for name, each in row.items() if each is not None} for row in rows]


def documents(form: str, count: int) -> list[Any]:
    """Some of which are near others, the same, and empty."""
    chosen = random.Random(form)
    if form == "text":
        return ["" if row % 50 == 7 else words((form, row // 3), 30) for row in range(count)]
    if form == "fingerprint":
        near = [chosen.getrandbits(63) for _ in range(count)]
        return [near[row // 3] ^ (row % 3) for row in range(count)]
    return [list(range(row // 3 * 100, row // 3 * 100 + row % 50)) for row in range(count)]


@pytest.mark.parametrize("form", ["text", "features", "fingerprint"])
def test_columns_are_answered_as_rows_are(form: str, tmp_path: Path) -> None:
    count = 2500
    column, names = documents(form, count), [f"d{row % 2400}" for row in range(count)]
    with nd.Index(**_made(form)) as index:
        answers = index.offer_many(names, [each or None for each in column])
    option = ("--distance", "3") if form == "fingerprint" else ("--similarity", "0.8")
    with Service(tmp_path / "index", *option) as service:
        table = sent(service, "seen", pa.table({"id": names, form: column}))
        assert [each["state"] for each in table] == [each.state for each in answers]
        near = [
            each["match"] and tuple(each["match"].values()) for each in table if not each["new"]
        ]
        assert near == [each.near for each in answers if each.near]
        counted = service.client.get("/metrics").text
        seen = sum(each.state == "seen" for each in answers)
        assert f'neardup_seen_total{{state="seen"}} {seen}.0' in counted
        again = sent(service, "add", pa.table({"id": ["new", "d0"], form: column[1:3]}))
        assert [each["state"] for each in again] == ["added", "added"]


@pytest.mark.parametrize("bits", [64, 128])
def test_first_documents_have_fingerprints_of_all_their_bits(bits: int) -> None:
    prints = [2**bits - 1, 2 ** (bits - 1) + 7]
    matches = [[FirstMatch("a", UNSET, 0, each)] for each in prints]
    answers = [*(FirstMatches("absent", each) for each in matches), FirstMatches("absent", [])]
    column = pa.ipc.open_stream(arrow_stream(answers)).read_all()["matches"].to_pylist()
    assert [int(match["fingerprint"]) for each in column for match in each] == prints


def _made(form: str) -> dict[str, Any]:
    if form == "fingerprint":
        return {"distance": 3}
    return {"similarity": 0.8, "recipe": nd.Recipe() if form == "text" else None}
