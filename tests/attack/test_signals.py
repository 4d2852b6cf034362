"""Signals: 130 for SIGINT, 143 for SIGTERM, one line, nothing left; a second one ends at once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from commands import DOCS, TIMEOUT, lines
from neardup.documents import OutputSet
from neardup.runtime.signals import Interrupts, uninterrupted
from suite import ATTACKS

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = [sys.executable, "-m", "neardup"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_until_outputs_have_their_names(
    number: signal.Signals, tmp_path: Path
) -> None:
    target = tmp_path / "out"

    def write() -> None:
        with OutputSet() as outputs:
            outputs.create(str(target)).write(b"whole")
            with uninterrupted():
                signal.raise_signal(number)
                outputs.commit()

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt) as caught:
            write()
        assert interrupts.exit_code == 128 + number
    assert caught.value.__notes__ == ["the outputs are written"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts(), uninterrupted():
        pass
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_second_interrupt_ends_at_once() -> None:
    program = (
        "import neardup.cli as c, os, time\n"
        "def slow(**_):\n  try:\n    os.write(1, b'.')\n    time.sleep(60)\n"
        "  finally: time.sleep(60)\nc.app = slow\nc.main()"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.read(1) == b"."
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert time.monotonic() - begun < 5


DECIDED = """
import atexit, os, signal, neardup.cli as c
atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
c.app = lambda **_: 0
c.main()
"""


def test_a_signal_after_the_exit_code_is_decided_changes_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DECIDED],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.timeout(3600)
def test_at_any_moment_it_is_one_of_the_two_codes_or_done(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_bytes(lines(DOCS) * 50)
    command = [*PROGRAM, "dedup", "docs.jsonl", "-o", "out.jsonl"]
    begun = time.monotonic()
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    whole = time.monotonic() - begun
    rng = random.Random(ATTACKS)
    for _ in range(max(4, ATTACKS // 10)):
        (tmp_path / "out.jsonl").unlink(missing_ok=True)
        number = rng.choice([signal.SIGINT, signal.SIGTERM])
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
            time.sleep(rng.uniform(0.1, whole))
            process.send_signal(number)
            _, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode in {0, 128 + number, -number}, err
        if process.returncode == -number:  # Python itself had not begun
            assert b"neardup" not in err
        assert b"Traceback" not in err or process.returncode == -number
        is_there = (tmp_path / "out.jsonl").exists()
        assert is_there or process.returncode
        assert not (is_there and b"no file was written" in err)
        assert {path.name for path in tmp_path.iterdir()} <= {"docs.jsonl", "out.jsonl"}
