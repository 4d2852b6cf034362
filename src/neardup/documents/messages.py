"""An e-mail message as a record: its headers, the text in it, and what is attached."""

from __future__ import annotations

from email import policy
from email.errors import MessageError
from email.header import decode_header
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from neardup.documents.files.encodings import decoded_as
from neardup.documents.files.problems import BadRecordError
from neardup.documents.markup import visible_text

if TYPE_CHECKING:
    from email.message import Message

__all__ = ["message_record"]

_PARSER: Final = BytesParser(policy=policy.compat32)
"""The newer policies raise at malformed headers, which old mail is full of."""


def message_record(data: bytes, address: str) -> dict[str, Any]:
    r"""The fields of a message, as it stands in a mailbox.

    `text` is the subject and the body, which is what is text/plain in it, or else the visible text
    of what is text/html. What its encodings do not explain is guessed, or replaced.

    Args:
        data: The bytes, with or without the line `From ...` before the headers.
        address: Its id if it has no Message-ID.

    Raises:
        BadRecordError: If it cannot be parsed at all.

    Example:
        >>> record = message_record(b"Subject: Tea\nDate: 1 Feb 2003 04:05:06 +0100\n\nhot", "a:1")
        >>> record["text"], record["date"], record["id"]
        ('Tea\nhot', '2003-02-01T04:05:06+01:00', 'a:1')
    """
    data = data.lstrip(b"\r\n")
    if data.startswith(b"From "):
        data = data[data.find(b"\n") + 1 :]
    try:
        return _record(_PARSER.parsebytes(data), address)
    except Exception as error:  # noqa: BLE001  # the library has many ways to fail
        what = " ".join(str(error).split()) or type(error).__name__
        raise BadRecordError(f"not a message that can be read: {what}") from None


def _record(message: Message, address: str) -> dict[str, Any]:
    plain: list[str] = []
    pages: list[str] = []
    attached: list[str] = []
    for part in message.walk():
        name = part.get_filename()
        if name is not None:
            attached.append(_header(name))
        elif part.get_content_maintype() == "text" and not part.is_multipart():
            is_page = part.get_content_subtype() == "html"
            (pages if is_page else plain).append(_payload(part))
    subject = _header(message["Subject"])
    body = "\n".join(plain if any(x.strip() for x in plain) else map(visible_text, pages)).strip()
    return {
        "id": _header(message["Message-ID"]) or address,
        "subject": subject,
        "date": _date(message["Date"]),
        "from": _header(message["From"]),
        "to": _header(message["To"]),
        "text": f"{subject}\n{body}",
        "body": body,
        "attachments": attached,
    }


def _payload(part: Message) -> str:
    data = part.get_payload(decode=True)
    return _decoded(data if isinstance(data, bytes) else b"", part.get_content_charset())


def _header(value: Any) -> str:
    """A header on one line; "" of one that is not there."""
    if value is None:
        return ""
    try:
        parts = decode_header(value)
    except MessageError:
        parts = [(str(value), None)]
    return " ".join("".join(_decoded(*part) for part in parts).split())


def _decoded(data: bytes | str, charset: str | None) -> str:
    raw = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    return decoded_as(raw, charset)


def _date(value: Any) -> str | None:
    """A date in ISO 8601; None of one that is missing or unreadable."""
    try:
        return parsedate_to_datetime(str(value)).isoformat()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
