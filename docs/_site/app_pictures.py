"""Take the pictures of the vetting app: ``python docs/_site/app_pictures.py`` (needs trueup[serve] and a Chromium).

The app is that of ``trueup serve --demo``. Two programs read the made-up reviews as people would, a few seconds each,
and the owner's page is what is there after three minutes.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import trueup as tu
from trueup.serve.guard import Access
from trueup.serve.running import MOODS, demo_data
from trueup.storage import open_storage

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from chromium import Chromium, start_chromium

FOLDER = Path(__file__).parents[1] / "guide"
N_ANSWERS, PAUSE = 30, 4.0  # of each of two experts; seconds


def mood_of(review: str) -> str:
    """What someone who reads it says."""
    for mood, sentences in MOODS.items():
        if any(re.match(sentence.replace("{thing}", ".+"), review, re.IGNORECASE) for sentence in sentences):
            return mood
    raise ValueError(f"no mood has {review!r}")


def answer(address: str, token: str, reviews: dict[str, str]) -> None:
    """Take cards one by one."""
    expert = tu.connect(address, token)
    for _ in range(N_ANSWERS):
        while not (items := expert.ask()):  # the next cards are being drawn
            time.sleep(PAUSE)
        for item in items:
            time.sleep(PAUSE)
            expert.tell({item: mood_of(reviews[item])}, seconds=PAUSE)


def enter(browser: Chromium, link: str) -> None:
    """Use a link, and wait until the page behind it is there."""
    browser.visit(link)
    browser.evaluate("document.querySelector('form').submit()")
    time.sleep(5)


def take(browser: Chromium, path: Path, *, height: int) -> None:
    """A picture of what is shown, without what is below."""
    browser.resize(1100, height=height)
    browser.screenshot(path, whole=False)


def main() -> None:
    """Serve, answer, take both pictures."""
    _, labels = demo_data()
    reviews = dict(zip(labels.items.tolist(), labels.item_column("review").tolist(), strict=True))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/demo.db"
        serve = [sys.executable, "-m", "trueup", "serve", "--demo", "--port", port, "--storage", url]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server, start_chromium() as started:
            browser = Chromium(started)
            try:
                links = {}
                for line in server.stdout or ():
                    if found := re.match(r"(\w+) \(\w+\), once: (\S+)", line):
                        links[found[1]] = found[2]
                    if len(links) == 3:
                        break
                storage = open_storage(url)
                tokens = [Access(storage, "demo").give("token", who, "expert") for who in ("cleo", "dan")]
                storage.close()
                experts = [threading.Thread(target=answer, args=(address, token, reviews)) for token in tokens]
                for expert in experts:
                    expert.start()
                for expert in experts:
                    expert.join()
                enter(browser, links["owner"])
                take(browser, FOLDER / "vetting-app-owner.png", height=1500)
                enter(browser, links["ann"])
                take(browser, FOLDER / "vetting-app-card.png", height=600)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
