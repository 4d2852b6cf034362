"""The description of the service is right: what it allows is taken, and what not is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import neardup as nd
from neardup.service.openapi import openapi
from services import Service
from suite import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

PHASES = "examples,coverage,fuzzing"


@pytest.mark.parametrize("kind", ["similarity", "distance"])
def test_schemathesis_finds_nothing(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    if kind == "distance":
        nd.DurableIndex.create(tmp_path / "index", 3, recipe=nd.Recipe()).close()
    with Service(tmp_path / "index", "--backups", str(tmp_path / "backups")) as service:
        program = "from schemathesis.cli import schemathesis; schemathesis()"
        options = ("--phases", PHASES, "--max-examples", str(max(3, EXAMPLES // 8)), "--no-color")
        process = subprocess.run(
            [sys.executable, "-c", program, "run", f"{service.url}/openapi.json", *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
        assert process.returncode == 0, process.stdout
        assert "13 selected / 13 total" in process.stdout
        assert "Traceback" not in "".join(service.log)


def test_the_description_names_what_there_is(tmp_path: Path) -> None:
    with Service(tmp_path / "index") as service:
        described = service.client.get("/openapi.json").json()
        assert described["openapi"] == "3.1.0"
        for path, methods in described["paths"].items():
            method = next(iter(methods))
            other = {"get": "POST", "post": "GET"}[method]
            assert service.client.request(method, path).status_code != 404
            assert service.client.request(other, path).status_code == 405
        assert "text" in json.dumps(described["components"]["schemas"]["Document"])
        assert {"200", "413", "422"} <= described["paths"]["/v1/seen"]["post"]["responses"].keys()


def test_a_document_has_one_of_the_forms_that_the_index_takes(tmp_path: Path) -> None:
    whole = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
    for name, options, forms in (
        ("texts", {"similarity": 0.8, "recipe": nd.Recipe()}, {"text", "features"}),
        ("features", {"similarity": 0.8}, {"features"}),
        ("codes", {"distance": 3, "bits": 128}, {"fingerprint"}),
    ):
        with nd.DurableIndex.open(tmp_path / name, **options) as index:  # type: ignore[call-overload]
            if name != "texts":
                index.add([7], [[1, 2]] if name == "features" else [5])
            schemas = openapi(index, has_keys=False)["components"]["schemas"]
        document = schemas["Document"]
        assert {form["required"][0] for form in document["oneOf"]} == forms
        assert document["properties"].keys() & {"text", "features", "fingerprint"} == forms
        kinds = document["properties"]["id"]
        assert kinds == ({"anyOf": [{"type": "string"}, whole]} if name == "texts" else whole)
        codes = {"type": "integer", "minimum": 0}
        reach = schemas["Query"]["properties"]
        if name == "codes":
            assert document["properties"]["fingerprint"] == codes | {"maximum": 2**128 - 1}
            assert reach["distance"] == {"type": "integer", "minimum": 0, "maximum": 3}
        else:
            assert document["properties"]["features"]["items"] == codes | {"maximum": 2**64 - 1}
            assert reach["similarity"] == {"type": "number", "minimum": 0.8, "maximum": 1}
