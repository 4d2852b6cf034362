"""Request bodies: one document or many, read within limits and answered in the same form.

JSON     an object, or an array of objects; the answer is an object or an array
NDJSON   an object a line, read and answered as it comes
Arrow    an IPC stream with a column for each field, and one of answers
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec import UNSET

from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import pyarrow as pa

    from neardup.service.settings import Limits

    Receive = Callable[[], Awaitable[dict[str, Any]]]

__all__ = [
    "ARROW", "JSON", "NDJSON", "ClientGoneError", "Request", "arrow_rows", "arrow_stream",
    "arrow_table", "decoded", "media_type", "read_lines", "read_whole",
]  # fmt: skip


@dataclass(slots=True)
class Request:
    """A request as handlers see it.

    Args:
        headers: Names in lower case.
        receive: Gives the next piece of its body; TimeoutError if it does not come in time.
        send: Takes the messages of its answer.
        common: Headers of its answer.
        status: Of its answer; 0 before that begins.
    """

    headers: dict[bytes, bytes]
    receive: Receive
    send: Callable[[dict[str, Any]], Awaitable[None]]
    common: list[tuple[bytes, bytes]]
    status: int = 0

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head of the answer."""
        self.status = status
        await self.send({"type": "http.response.start", "status": status, "headers": headers})


JSON: Final = b"application/json"
NDJSON: Final = b"application/x-ndjson"
ARROW: Final = b"application/vnd.apache.arrow.stream"
_ALIASES: Final = {b"application/ndjson": NDJSON, b"application/jsonl": NDJSON}


def media_type(headers: dict[bytes, bytes]) -> bytes:
    """The media type of a body that the service reads.

    Raises:
        Problem: For another one, or an encoded body.
    """
    encoding = headers.get(b"content-encoding", b"")
    if encoding.strip().lower() not in {b"", b"identity"}:
        name = encoding[:100].decode("latin-1")
        problem = f"Content-Encoding is {name!r}: send the body without any"
        raise Problem("media-type", problem, closes=True)
    value = headers.get(b"content-type", b"")
    if value == JSON:
        return JSON
    bare = value.partition(b";")[0].strip().lower()
    bare = _ALIASES.get(bare, bare)
    if bare not in {JSON, NDJSON, ARROW}:
        name = value[:100].decode("latin-1")
        raise Problem(
            "media-type", f"Content-Type is {name!r}: send 'application/json'", closes=True
        )
    return bare


class ClientGoneError(Exception):
    """The client closed the connection before it read the answer."""


async def read_whole(receive: Receive, headers: dict[bytes, bytes], limits: Limits) -> bytes:
    """The whole body of a request that is not a stream.

    Raises:
        Problem: If it is too large or too slow.
        ClientGoneError: If the client went away.
    """
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.body_bytes:
        raise _too_large(int(length), limits)
    parts, size, is_whole = list[bytes](), 0, False
    while not is_whole:
        part, is_whole = await _part(receive, limits)
        parts.append(part)
        size += len(part)
        if size > limits.body_bytes:
            raise _too_large(size, limits)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_lines(receive: Receive, limits: Limits) -> AsyncIterator[list[bytes]]:
    """The lines of a streamed body, in groups that end with a received piece.

    Raises:
        Problem: As `read_whole`, for one line.
    """
    rest: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        part, is_whole = await _part(receive, limits)
        lines = part.split(b"\n")
        rest.append(lines[0])
        size += len(lines[0])
        if size > limits.body_bytes:
            raise _too_large(size, limits)
        if len(lines) > 1:
            yield [b"".join(rest), *lines[1:-1]]
            rest, size = [lines[-1]], len(lines[-1])
    yield [b"".join(rest)]


async def _part(receive: Receive, limits: Limits) -> tuple[bytes, bool]:
    """The next piece of a body, and whether it is the last one."""
    try:
        message = await receive()
    except TimeoutError:
        raise Problem(
            "body-too-slow", f"nothing came for {limits.body_seconds:g} seconds", closes=True
        ) from None
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return message.get("body", b""), not message.get("more_body")


def _too_large(size: int, limits: Limits) -> Problem:
    return Problem(
        "too-large",
        f"the body has {size:,} bytes or more, and the limit is {limits.body_bytes:,}",
        closes=True,
    )


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        Problem: If it is not JSON, or something else than the decoder reads.
    """
    try:
        try:
            return decoder.decode(body)
        except msgspec.ValidationError:  # 5.0 is a whole number too, for JSON Schema
            return msgspec.convert(_with_whole_numbers(msgspec.json.decode(body)), decoder.type)
    except msgspec.ValidationError as error:
        raise Problem("invalid-document", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("malformed-body", str(error)) from None


def _with_whole_numbers(value: Any) -> Any:
    """A JSON value in which each float without a fraction is an int."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(each) for each in value]
    if isinstance(value, dict):
        return {name: _with_whole_numbers(each) for name, each in value.items()}
    return value


def arrow_table(body: bytes, limits: Limits) -> pa.Table:
    """The table of an Arrow IPC stream.

    Raises:
        Problem: If it is not such a stream, is too large, or has other columns than requests have.
    """
    import pyarrow as pa

    from neardup.service.arrow_limits import check_columns, check_packed

    try:
        check_packed(body, limits)
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)  # strings that are not UTF-8, offsets that lead out
    except (pa.ArrowException, OSError, ValueError, IndexError, struct.error) as error:
        raise Problem("malformed-body", str(error)) from None
    check_columns(table, limits)
    return table


def arrow_rows(table: pa.Table, kind: Any) -> list[Any]:
    """The rows of an Arrow table as request structures.

    Raises:
        Problem: If a row is not what `kind` has.
    """
    try:
        return msgspec.convert(table.to_pylist(), list[kind])
    except msgspec.ValidationError as error:
        raise Problem("invalid-document", str(error)) from None


def arrow_stream(answers: list[Any]) -> bytes:
    """Answers as an Arrow IPC stream, with a row for each and a column for each field."""
    import pyarrow as pa

    kinds: dict[Any, None] = dict.fromkeys(map(type, answers))
    fields = dict.fromkeys(
        name for kind in kinds if kind is not Problem for name in kind.__struct_fields__
    )
    columns = {name: [_plain(getattr(each, name, UNSET)) for each in answers] for name in fields}
    if Problem in kinds:
        columns["error"] = [
            each.to_dict() if isinstance(each, Problem) else None for each in answers
        ]
    arrays = {name: pa.array(values) for name, values in columns.items()}
    table = pa.table({name: each for name, each in arrays.items() if len(each) > each.null_count})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _plain(value: Any) -> Any:
    """The value of a field of an answer in a form that Arrow accepts."""
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, list):
        return [_plain_match(msgspec.to_builtins(each)) for each in value]
    return None if value is UNSET else msgspec.to_builtins(value)


def _plain_match(match: dict[str, Any]) -> dict[str, Any]:
    """A match with its fingerprint as uint64, or in decimal digits if it is wider."""
    value = match.get("fingerprint")
    if value is None:
        return match
    return match | {"fingerprint": np.uint64(value) if value < 1 << 64 else str(value)}
