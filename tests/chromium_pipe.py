"""A headless Chromium on the end of a pipe: just enough of its DevTools protocol, with nothing to install."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

NAMES = (
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chromium-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


class NoBrowser(Exception):
    """There is no browser that starts; the text says what was tried and what to do."""


def start_chromium(*, wait: float = 120) -> "Chromium":
    """The first browser that starts, of those on the path or the one that the variable CHROMIUM names.

    One that is there and does not start, such as the stub of a package that was never fetched, is no browser.
    """
    chosen = os.environ.get("CHROMIUM")
    paths = [path for name in ([chosen] if chosen else NAMES) if (path := shutil.which(name))]
    failures = []
    for path in paths:
        try:
            return Chromium(path, wait=wait)
        except OSError as problem:  # also that it does not answer in time, or leaves
            failures.append(f"{path} does not start ({problem})")
    tried = "; ".join(failures) or (f"there is no {chosen!r}" if chosen else "there is no chromium")
    raise NoBrowser(f"{tried}: install one (apt-get install chromium) or name one in CHROMIUM")


# Both ends are moved away first: one may be the other's number. This runs in a process of its own, since code between
# fork and exec is not safe beside threads, and later Pythons warn of it.
CONNECT = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def start_with_pipes(command: list[str], read_it: int, write_it: int) -> subprocess.Popen[bytes]:
    """Start a program, in a group of its own, that reads at 3 and writes at 4."""
    silent = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-S", "-c", CONNECT, str(read_it), str(write_it), *command],
        pass_fds=(read_it, write_it),
        start_new_session=True,
        stdin=silent,
        stdout=silent,
        stderr=silent,
    )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Chromium:
    """A browser with one page; a context manager. The constructor raises OSError if it does not answer in time."""

    def __init__(self, path: str, *, wait: float = 120) -> None:
        self._wait = wait
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        with ExitStack() as cleaning:
            profile = cleaning.enter_context(
                tempfile.TemporaryDirectory(prefix="trueup-chromium-", ignore_cleanup_errors=True)
            )
            read_it, self._in = os.pipe()  # what the browser reads
            self._out, write_it = os.pipe()  # what it writes
            cleaning.callback(os.close, self._in)
            cleaning.callback(os.close, self._out)
            try:
                process = start_with_pipes(
                    [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"], read_it, write_it
                )
            finally:
                os.close(read_it)
                os.close(write_it)
            cleaning.callback(end_group, process)
            attached = self.send("Target.attachToTarget", targetId=self._first_page(), flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.send(f"{domain}.enable")
            self._cleaning = cleaning.pop_all()

    def _first_page(self) -> str:
        """The page that the browser starts with, which may take a moment to be there."""
        until = time.monotonic() + self._wait
        while time.monotonic() < until:
            for target in self.send("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return target["targetId"]
            time.sleep(0.05)
        raise TimeoutError("the browser opens no page")

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, *problem: object) -> None:
        self._cleaning.close()

    def _read(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            block = os.read(self._out, 1 << 20)
            if not block:
                raise ConnectionError("the browser has ended")
            self._buffer += block
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and wait for its answer; events on the way are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self._wait
        while True:
            answer = self._read(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def resize(self, width: int, *, dark: bool = False, height: int = 900) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path) -> None:
        """Load a file and wait until it is there."""
        self.visit(page.resolve().as_uri())

    def visit(self, address: str) -> None:
        """Load a page and wait until it is there."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        until = time.monotonic() + self._wait
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read(until))
        self.evaluate("1")  # what was logged before is read by then

    def evaluate(self, expression: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """What the console shows: errors, exceptions and broken policies."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event["params"])[:500] for event in self.events if event.get("method") in kinds]

    def requests(self) -> list[str]:
        found = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in found]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
