"""Mailboxes: a record a message, kept ones byte for byte."""

from __future__ import annotations

import gzip
import json
import mailbox
from email.message import EmailMessage
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import OutputSet, ReadOptions, open_sources, read_table, write_outputs
from neardup.documents.messages import message_record
from neardup.errors import DataError, UsageError

HEAD = b"From a@b.c Mon Jan  1 00:00:00 2024\n"


def message(subject: str, body: str, date: str = "Mon, 1 Jan 2024 10:00:00 +0000") -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"], message["Date"] = subject, "Ümit <u@x.org>", date
    message["Message-ID"] = f"<{subject}@x.org>"
    message.set_content(body)
    return HEAD + bytes(message) + b"\n"


def records(data: bytes, folder: Path, **options: Any) -> list[Any]:
    path = folder / "in.mbox"
    path.write_bytes(data)
    (source,) = open_sources([str(path)])
    batches = list(source.batches(ReadOptions(**options)))
    return [text for batch in batches for text in batch.texts.to_pylist()]


def test_fields_of_a_message() -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "Grüße und\n Küsse".replace("\n", ""), "Ümit <u@x.org>"
    message["To"], message["Date"] = "a@b.c, d@e.f", "Tue, 02 Jan 2024 10:00:00 -0500"
    message.set_content("plain körper\n")
    message.add_alternative("<p>page</p>", subtype="html")
    message.add_attachment(b"\0", "image", "png", filename="Übersicht.png")
    record = message_record(HEAD + bytes(message), "in.mbox:7")
    assert record == {
        "id": "in.mbox:7", "subject": "Grüße und Küsse", "from": "Ümit <u@x.org>",
        "to": "a@b.c, d@e.f", "date": "2024-01-02T10:00:00-05:00",
        "text": "Grüße und Küsse\nplain körper", "body": "plain körper",
        "attachments": ["Übersicht.png"],
    }  # fmt: skip
    page = b"Content-Type: text/html; charset=utf-8\n\n<style>x</style><p>only <b>page</b>"
    assert message_record(page, "")["text"] == "\nonly page"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"Subject: gr\xfc\xdfe\n\nk\xf6nnen wir das \xfcben", "grüße\nkönnen wir das üben"),
        (b"Content-Type: text/plain; charset=klingon\n\n\xc3\xa9t\xc3\xa9", "\nété"),
        (b"Content-Type: text/plain; charset=hex\n\nab", "\nab"),
        (b"Content-Transfer-Encoding: base64\n\n!!!", "\n"),
        (b"Content-Type: text/plain; charset=utf-8\n\na\xffb", "\naÿb"),
        (b"Subject: =?utf-8?b?w?= x\n\nb", "=?utf-8?b?w?= x\nb"),
        (b"Subject: =?utf-7?q?+2AA-?=\n\nb", "?\nb"),
        (b"no headers at all", "\nno headers at all"),
        (b"", "\n"),
    ],
)  # fmt: skip
def test_broken_encodings_are_survived(data: bytes, text: str) -> None:
    assert message_record(data, "")["text"] == text


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_a_bad_record(data: bytes) -> None:
    record = message_record(b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + data, "")
    assert isinstance(record["text"].encode(), bytes)


def subjects(path: Path | str) -> list[str]:
    """As Python's mailbox reads them."""
    box = mailbox.mbox(path)
    result = [each["subject"] for each in box]
    box.close()
    return result


BODY = st.lists(st.sampled_from(["", "From here", "a", " From", "\r", ">From "]), max_size=5)


@given(st.lists(BODY, max_size=4), st.data())
def test_messages_are_those_of_pythons_mailbox(
    bodies: list[list[str]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        box = mailbox.mbox(f"{folder}/in.mbox")
        for number, lines in enumerate(bodies):
            one = mailbox.mboxMessage()
            one["Subject"] = str(number)
            one.set_payload("".join(f"{line}\n" for line in lines))
            box.add(one)
        box.close()
        path = Path(folder, "in.mbox")
        (source,) = open_sources([str(path)])
        options = ReadOptions(text=("subject",))
        read = [x for batch in source.batches(options) for x in batch.texts.to_pylist()]
        assert read == [str(i) for i in range(len(bodies))]
        keep = [data.draw(st.booleans()) for _ in bodies]
        with OutputSet(source.paths) as outputs:
            write_outputs([source], [np.array(keep, np.bool_)], f"{folder}/out.mbox", outputs)
            outputs.commit()
        assert subjects(f"{folder}/out.mbox") == [str(i) for i, stays in enumerate(keep) if stays]
        if all(keep):
            assert Path(folder, "out.mbox").read_bytes() == path.read_bytes()


def test_the_newest_of_a_thread_is_kept(tmp_path: Path) -> None:
    same = "the same words of a letter that was sent twice to the same people"
    first = message("one", same, "Mon, 1 Jan 2024 10:00:00 +0900")
    later = message("two", same, "Mon, 1 Jan 2024 09:00:00 +0000")
    undated = message("three", same, "yesterday")
    path, other = tmp_path / "in.mbox", tmp_path / "b.mbox.gz"
    path.write_bytes(first + later[:-2])  # no line end
    other.write_bytes(gzip.compress(undated + message("four", "something else about tea")))
    result = nd.dedup([path, other], tmp_path / "kept.mbox", text="body", id="id",
                     keep="newest:date", duplicates=tmp_path / "d.jsonl")  # fmt: skip
    assert result.summary.kept == 2
    rows = [json.loads(x) for x in (tmp_path / "d.jsonl").read_text().splitlines()]
    assert [(row["dropped"], row["kept"]) for row in rows] == [
        ("<one@x.org>", "<two@x.org>"), ("<three@x.org>", "<two@x.org>"),
    ]  # fmt: skip
    assert subjects(tmp_path / "kept.mbox") == ["two", "four"]
    assert [where for where, _ in read_table(str(path))] == [f"{path}:1", f"{path}:2"]
    named = nd.dedup(path, text="body", duplicates=None)
    assert named.summary.dropped == 1


def test_bad_mailboxes_are_one_line_or_a_bad_record(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"in\.mbox:1: a mailbox begins with a line such as"):
        records(b"Subject: x\n\nno mailbox", tmp_path)
    assert records(b"", tmp_path) == []
    assert records(b"\n\n" + message("one", "a"), tmp_path) == ["one\na"]
    deep = b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (i, i) for i in range(3000)
    )
    data = message("one", "a") + HEAD + deep + b"\n\n" + message("two", "b" * 70)
    with pytest.raises(DataError, match=r"in\.mbox:2: not a message that can be read"):
        records(data, tmp_path)
    assert records(data, tmp_path, skip_errors=True) == ["one\na", "two\n" + "b" * 70]
    long = (
        message("one", "a") + HEAD + b"Subject: x\n\n" + b"y" * 5000 + b"\n\n" + message("two", "b")
    )
    with pytest.raises(DataError, match=r"in\.mbox:2: a record of .* is too long"):
        records(long, tmp_path, record_bytes=2000)
    assert records(long, tmp_path, record_bytes=2000, skip_errors=True) == ["one\na", "two\nb"]
    with pytest.raises(UsageError, match="is for kept records, not for tables"):
        nd.dedup(tmp_path / "in.mbox", duplicates=tmp_path / "d.mbox")
    with pytest.raises(DataError, match=r'no field "subjekt".*did you mean --text subject'):
        records(data, tmp_path, text=("subjekt",))
