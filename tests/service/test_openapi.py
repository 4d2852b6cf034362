"""The OpenAPI description is right: what it allows is answered so, what it does not is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

import neardup as nd
from services import Service
from suite import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", params=["similarity", "distance"])
def service(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("described") / "index"
    if request.param == "distance":
        nd.DurableIndex.create(folder, 3, recipe=nd.Recipe()).close()
    with Service(folder) as found:
        yield found


def test_schemathesis_finds_nothing(service: Service) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    count = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in modes:

            @settings(
                max_examples=max(5, EXAMPLES // 5),
                deadline=None,
                database=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @schemathesis.pytest.given(case=operation.as_strategy(generation_mode=mode))
            def check(case: Any) -> None:
                case.call_and_validate()

            try:
                check()
            except Exception as error:
                if type(error).__name__ not in {"Unsatisfiable", "SkipTest"}:
                    raise
            count += 1
    assert count > 20


def test_the_description_names_what_there_is(service: Service) -> None:
    described = service.client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    for path, methods in described["paths"].items():
        method = next(iter(methods))
        other = {"get": "POST", "post": "GET"}[method]
        assert service.client.request(method, path).status_code != 404
        assert service.client.request(other, path).status_code == 405
    assert "text" in json.dumps(described["components"]["schemas"]["Document"])
