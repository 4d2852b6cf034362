"""Chromium without a window, driven over its debugging pipe: it loads, presses keys, reads."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SECONDS = 60


class Browser:
    """One page; `problems` has what its console and its scripts complained of."""

    def __init__(
        self, profile: Path, size: tuple[int, int] = (1000, 800), dark: bool = False
    ) -> None:
        assert CHROMIUM is not None
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        # Chromium reads descriptor 3 and writes descriptor 4.
        command = (
            f'exec "{CHROMIUM}" --headless --no-sandbox --disable-gpu --remote-debugging-pipe'
            f' --hide-scrollbars --user-data-dir="{profile}" about:blank'
            f" 3<&{to_read} 4>&{to_write}"
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.problems: list[str] = []
        self._events: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        result = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = result["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command, and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser says nothing"
            self._buffer += os.read(self._in, 1 << 20)
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = dict(json.loads(line))
        name = message.get("method", "")
        self._events.append(name)
        if name in {"Runtime.exceptionThrown", "Log.entryAdded"}:
            self.problems.append(json.dumps(message["params"])[:400])
        return message

    def wait_for(self, event: str) -> None:
        """Until the page says so."""
        while event not in self._events:
            self._read()

    def open(self, url: str) -> None:
        self._events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def press(self, key: str, loads: bool = True) -> None:
        """Press a key, and wait for the page that it leads to."""
        self._events.clear()
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key[:1] * (len(key) == 1))
        if loads:
            self.wait_for("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What an expression gives in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self, path: Path, whole: bool = False) -> None:
        result = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(result["data"]))

    def printed(self, path: Path) -> None:
        """As a PDF file."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF")["data"]))

    def until(self, expression: str) -> None:
        """Until an expression holds in the page."""
        end = time.monotonic() + SECONDS
        while not self.value(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.05)
