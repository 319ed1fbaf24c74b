"""A headless Chromium of this machine, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = (
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chromium-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"]


class NoBrowser(Exception):
    """There is no browser that starts; the text says what was tried and what to do."""


@contextmanager
def start_chromium(*, wait: float = 120) -> Iterator["Browser"]:
    """The first browser that starts, of those on the path or the one that the variable CHROMIUM names.

    One that is there and does not start, such as the stub of a package that was never fetched, is no browser.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise NoBrowser("there is no playwright, which is part of trueup[dev]") from None
    chosen = os.environ.get("CHROMIUM")
    paths = [path for name in ([chosen] if chosen else NAMES) if (path := shutil.which(name))]
    failures = []
    with sync_playwright() as playwright:
        for path in paths:
            try:
                browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * wait)
            except Error as problem:
                failures.append(f"{path} does not start ({str(problem).splitlines()[0]})")
                continue
            with closing(browser):
                yield browser
            return
    tried = "; ".join(failures) or (f"there is no {chosen!r}" if chosen else "there is no chromium")
    raise NoBrowser(f"{tried}: install one (apt-get install chromium) or name one in CHROMIUM")


class Chromium:
    """One page of a browser, and what it asked for and complained of."""

    def __init__(self, browser: "Browser") -> None:
        self._page = browser.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._page.on("console", lambda message: self.complaints.append(message.text))
        self._page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self._page.on("request", lambda request: self.requests.append(request.url))

    def resize(self, width: int, *, dark: bool = False, height: int = 900) -> None:
        self._page.set_viewport_size({"width": width, "height": height})
        self._page.emulate_media(color_scheme="dark" if dark else "light")

    def open(self, page: Path) -> None:
        """Load a file and wait until it is there."""
        self.visit(page.resolve().as_uri())

    def visit(self, address: str) -> None:
        """Load a page and wait until it is there."""
        self.complaints.clear()
        self.requests.clear()
        self._page.goto(address)

    def evaluate(self, expression: str) -> Any:
        return self._page.evaluate(expression)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        self._page.screenshot(path=path, full_page=whole)
