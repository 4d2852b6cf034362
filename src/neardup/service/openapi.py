"""The description of a service, OpenAPI 3.1, made from the structures that it reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from neardup.runtime.version import __version__
from neardup.service.bodies import ARROW, JSON, NDJSON
from neardup.service.messages import (
    Added,
    Backup,
    ComparedTexts,
    Document,
    ExplainedText,
    First,
    FirstMatches,
    Matches,
    Nearest,
    Query,
    Removal,
    Removed,
    Seen,
)
from neardup.service.problem_details import KINDS, PROBLEM

if TYPE_CHECKING:
    from neardup.index import DurableIndex

__all__ = ["openapi"]

_REF: Final = "#/components/schemas/{name}"
_ROWS: Final[dict[str, tuple[Any, Any, str]]] = {
    "seen": (Document, Seen, "Store a document unless another one is near"),
    "query": (Query, Matches, "What is near"),
    "first": (First, FirstMatches, "What is near and was stored first, and how an id is stored"),
    "nearest": (Nearest, Matches, "What is closest, however far"),
    "add": (Document, Added, "Store a document, whatever is near"),
    "remove": (Removal, Removed, "Remove a document; may be repeated"),
}
_READ: Final = ("malformed-body", "key-missing", "host-not-allowed", "body-too-slow")
_READ_TOO: Final = ("other-recipe", "too-large", "media-type", "invalid-document")
_WAITS: Final = ("queue-full", "failure", "not-ready")


def openapi(index: DurableIndex, *, has_keys: bool) -> dict[str, Any]:
    """The OpenAPI description of a service.

    Args:
        index: Which it serves: the documents that it takes are described.
        has_keys: Whether it asks for keys.
    """
    kinds = [Document, Query, First, Nearest, Removal, ComparedTexts, ExplainedText]
    answers = [Seen, Matches, FirstMatches, Added, Removed, Backup]
    _, schemas = msgspec.json.schema_components([*kinds, *answers], ref_template=_REF)
    for name in ("Document", "Query", "First", "Nearest"):
        _say_what_is_taken(schemas[name], index)
    for name in ("Document", "First", "Removal"):
        schemas[name]["properties"]["id"] = _id_schema(index)
    reach: dict[str, Any]
    if index.by == "similarity":
        reach = {"type": "number", "minimum": index.similarity, "maximum": 1}
    else:
        reach = {"type": "integer", "minimum": 0, "maximum": index.distance}
    for name in ("Query", "First"):
        properties = schemas[name]["properties"]
        del properties["similarity"], properties["distance"]
        properties[index.by] = reach
    schemas["Problem"] = _PROBLEM_SCHEMA
    paths: dict[str, Any] = {
        f"/v1/{name}": {"post": _rows_operation(name, kind, answer, title)}
        for name, (kind, answer, title) in _ROWS.items()
    }
    texts = (
        ("compare", "ComparedTexts", "How alike two texts are"),
        ("explain", "ExplainedText", "Why a text has the features that it has"),
    )
    for name, kind, title in texts:
        paths[f"/v1/{name}"] = {
            "post": {
                "operationId": name,
                "summary": title,
                "requestBody": _body({JSON: _ref(kind)}),
                "responses": _responses({JSON: {"type": "object"}}, *_READ, *_READ_TOO, *_WAITS),
            }
        }
    paths["/v1/backup"] = {
        "post": {
            "operationId": "backup",
            "summary": "Copy the index to a new folder next to earlier copies",
            "requestBody": _body({JSON: {"type": "object", "additionalProperties": False}}),
            "responses": _responses(
                {JSON: _ref("Backup")}, *_READ, *_READ_TOO, "no-backups", *_WAITS, "write-failed"
            ),
        }
    }
    for path, kind, schema, title in _SHOWN:
        fine = {"200": {"description": "OK", "content": {kind: {"schema": schema}}}}
        problems = _problems("key-missing", "host-not-allowed", "failure")
        paths[path] = {"get": {"summary": title, "responses": fine | problems}}
    paths["/readyz"]["get"]["responses"]["503"] = {
        "description": "Not ready",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    description: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "neardup",
            "version": __version__,
            "description": f"Near-duplicates of the documents of one index, {index.by}.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }
    if has_keys:
        description["security"] = [{"key": []}]
    return description


_PROBLEM_SCHEMA: Final = {
    "type": "object",
    "title": "Problem details, RFC 9457",
    "properties": {
        "type": {"type": "string", "enum": [f"/problems/{name}" for name in KINDS]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}
_OBJECT: Final = {"type": "object"}
_TEXT: Final = {"type": "string"}
_SHOWN: Final = (
    ("/v1/index", "application/json", _OBJECT, "What the index takes, its size, and limits"),
    ("/livez", "application/json", _OBJECT, "Whether the process answers"),
    ("/readyz", "application/json", _OBJECT, "Whether new clients should come, and why not"),
    ("/metrics", "text/plain", _TEXT, "Counters, for Prometheus"),
)


def _say_what_is_taken(schema: dict[str, Any], index: DurableIndex) -> None:
    """Narrow the schema of documents to exactly one of the forms that the index takes."""
    properties = schema["properties"]
    hashes = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
    prints = {"type": "integer", "minimum": 0}
    forms: dict[str, Any] = {}
    if index.by == "similarity":
        forms["features"] = {"type": "array", "items": hashes}
    else:
        forms["fingerprint"] = prints | {"maximum": 2**index.bits - 1}
    if index.recipe is not None:
        forms["text"] = {"type": "string"}
    for name in ("text", "features", "fingerprint"):
        properties.pop(name)
    properties |= forms
    schema["oneOf"] = [{"required": [name]} for name in forms]


def _id_schema(index: DurableIndex) -> dict[str, Any]:
    whole: dict[str, Any] = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
    text: dict[str, Any] = {"type": "string"}
    return {"int": whole, "str": text}.get(index.id_kind or "", {"anyOf": [text, whole]})


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": _REF.format(name=name)}


def _rows_operation(name: str, kind: Any, answer: Any, title: str) -> dict[str, Any]:
    one, answer_schema = _ref(kind.__name__), _ref(answer.__name__)
    error = {"type": "object", "properties": {"error": _ref("Problem")}, "required": ["error"]}
    many = {"type": "array", "items": one}
    each = {"anyOf": [answer_schema, error]}
    body = {
        JSON: {"anyOf": [one, many]},
        NDJSON: {"type": "string", "description": "An object a line"},
        ARROW: {"type": "string", "description": "An IPC stream, a column a field"},
    }
    content = {
        JSON: {"anyOf": [answer_schema, {"type": "array", "items": each}]},
        NDJSON: {"type": "string"},
        ARROW: {"type": "string"},
    }
    writes = ("key-only-reads", "read-only", "other-ids", "too-late", "write-failed", "disk-full")
    more = {"seen": writes, "add": writes, "remove": writes, "first": ("other-ids",)}
    names = (*_READ, *_READ_TOO, *_WAITS, *more.get(name, ()))
    return {
        "operationId": name,
        "summary": title,
        "parameters": [
            {
                "name": "Neardup-Recipe",
                "in": "header",
                "description": "Digest of the recipe that the client goes by; another is refused",
                "schema": {"type": "string"},
            }
        ],
        "requestBody": _body(body),
        "responses": _responses(content, *names),
    }


def _body(content: dict[bytes, Any]) -> dict[str, Any]:
    return {"required": True, "content": _content(content)}


def _content(content: dict[bytes, Any]) -> dict[str, Any]:
    return {kind.decode(): {"schema": schema} for kind, schema in content.items()}


def _responses(content: dict[bytes, Any], *problems: str) -> dict[str, Any]:
    return {"200": {"description": "OK", "content": _content(content)}} | _problems(*problems)


def _problems(*names: str) -> dict[str, Any]:
    problems: dict[str, Any] = {}
    for name in names:
        kind = KINDS[name]
        status = problems.setdefault(
            str(kind.status),
            {"description": "", "content": _content({PROBLEM: _ref("Problem")})},
        )
        status["description"] += f"{'; ' if status['description'] else ''}{kind.title} ({name})"
    return dict(sorted(problems.items()))
