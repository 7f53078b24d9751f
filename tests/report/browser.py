"""Headless Chromium by its DevTools protocol over two pipes: nothing to install besides the browser itself."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--disable-extensions", "--mute-audio", "--remote-debugging-pipe"),
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
STARTER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""The browser reads commands from descriptor 3 and answers on 4."""
PATIENCE = 60.0
"""Seconds for one answer on a busy machine."""


def find_browser() -> str | None:
    """`$DPAA_BROWSER`, or a Chromium on the path; None if there is none."""
    named = os.environ.get("DPAA_BROWSER")
    return named or next((place for name in NAMES if (place := shutil.which(name))), None)


class Browser:
    """One tab; what it asks of the network, what its console says and what it downloads are kept."""

    def __init__(self, program: str) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="browser-"))
        self.downloads = self._home / "downloads"
        self.downloads.mkdir()
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        words = [sys.executable, "-c", STARTER, str(to_read), str(to_write), program, *FLAGS]
        self._process = subprocess.Popen(
            [*words, f"--user-data-dir={self._home / 'profile'}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        try:
            self._open_tab()
        except BaseException:
            self.close()
            raise

    def _open_tab(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser that was started here."""
        os.close(self._write)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        shutil.rmtree(self._home, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Any:
        """One command and its answer; events on the way are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            found = self._next(end)
            if found.get("id") == self._number:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]
            self._keep(found)

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def _keep(self, event: dict[str, Any]) -> None:
        name, told = event.get("method"), event.get("params", {})
        if name == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif name == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(told["args"]))
        elif name == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif name == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])

    # ------------------------------------------------------------------ what a reader does

    def size(self, width: int, height: int, phone: bool = False) -> None:
        """The window, or a phone's screen."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def dark(self, wanted: bool) -> None:
        """What the system prefers."""
        value = "dark" if wanted else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def open(self, file: Path) -> None:
        """A file, as by a double click; returns when it is loaded."""
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, expression: str) -> Any:
        """The value of a line of JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until it is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """A key, on what has the focus."""
        code = {"Enter": 13, "Tab": 9, " ": 32}[key]
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                **({"text": text} if kind == "keyDown" and text else {}),
            )

    def allow_downloads(self) -> None:
        """Into `downloads`."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def wait_for_file(self, name: str) -> bytes:
        """A download's content, once it is whole."""
        end = time.monotonic() + PATIENCE
        file = self.downloads / name
        while not file.exists() or not file.stat().st_size:
            assert time.monotonic() < end, f"{name} was not downloaded: {list(self.downloads.iterdir())}"
            self.run("1")
            time.sleep(0.05)
        return file.read_bytes()

    def screenshot(self, top: int = 0, height: int | None = None) -> bytes:
        """PNG of a stripe of the page, the whole width; the visible part without height."""
        clip = {}
        if height is not None:
            width = self.run("document.documentElement.clientWidth")
            clip = {
                "clip": {"x": 0, "y": top, "width": width, "height": height, "scale": 1},
                "captureBeyondViewport": True,
            }
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"])
