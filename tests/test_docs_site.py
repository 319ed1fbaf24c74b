"""The documentation site builds without a warning, asks for nothing from elsewhere, and its links lead somewhere."""

import importlib.util
import os
import re
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
FETCHED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
}
CSS_ADDRESS = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""")


class Page(HTMLParser):
    """The anchors of a page, the addresses it links to and those it fetches."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.without_alt: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.anchors.update(given[key] for key in ("id", "name") if key in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.fetched += [value for key, value in given.items() if (tag, key) in FETCHED]
        self.fetched += CSS_ADDRESS.findall(given.get("style", ""))
        if tag == "img" and not given.get("alt"):
            self.without_alt.append(given.get("src", ""))


def is_external(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in {"http", "https"}


def broken(page: Page, address: str, site: Path, pages: dict[Path, Page]) -> str | None:
    """Why an address of a page leads nowhere, or None."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    path = unquote(parts.path)
    if path.startswith("/"):
        target = site / path.lstrip("/")
    else:
        target = (page.path.parent / path).resolve() if path else page.path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "no such anchor"
    return None


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder.resolve()


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def names(site: Path, found: Iterator[tuple[Path, object]]) -> list[str]:
    return [f"{path.relative_to(site)}: {what}" for path, what in found]


def test_every_text_is_a_page(site):
    texts = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert texts <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_nothing_is_fetched_from_elsewhere(site, pages):
    fetched = [(path, address) for path, page in pages.items() for address in page.fetched]
    for sheet in site.rglob("*.css"):
        fetched += [(sheet, address) for address in CSS_ADDRESS.findall(sheet.read_text(encoding="utf-8"))]
    assert len(fetched) > len(pages)  # the reader sees scripts and styles at all
    assert not names(site, ((path, a) for path, a in fetched if is_external(a)))


def test_what_is_fetched_exists(site, pages):
    missing = ((p.path, f) for p in pages.values() for f in p.fetched if broken(p, f, site, pages))
    assert not names(site, missing)


def test_every_internal_link_leads_somewhere(site, pages):
    wrong = ((p.path, a) for p in pages.values() for a in p.links if broken(p, a, site, pages))
    assert not names(site, wrong)


def test_every_picture_has_words(site, pages):
    assert not names(site, ((page.path, page.without_alt) for page in pages.values() if page.without_alt))


def test_formulas_are_drawn(site):
    formulas = [f for p in site.rglob("*.html") for f in re.findall(r"<math.*?</math>", p.read_text(encoding="utf-8"))]
    assert len(formulas) > 100
    assert not [f for f in formulas if "\\" in f], "a command of LaTeX that latex2mathml does not know"
    assert "<math" in (site / "guide" / "compare.html").read_text(encoding="utf-8")
    left = [p.name for p in site.rglob("*.html") if 'class="arithmatex"' in p.read_text(encoding="utf-8")]
    assert not left


def test_every_name_of_the_api_page_has_its_docstring(site, pages):
    api = pages[site / "api.html"]
    listed = re.findall(r"^- `(\w+)`: ", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    linked = [a for a in api.links if re.fullmatch(r"api/trueup[\w.]*\.html#trueup\.[\w.]+", a)]
    assert len(linked) > 0.9 * len(listed)  # all but modules and __version__


def test_the_picture_of_why_is_what_its_script_measures():
    drawn = (ROOT / "docs" / "why.svg").read_text(encoding="utf-8")
    figure = site_module("why_figure")
    rows = re.findall(r"<title>true ([\d.]+); key ([\d.]+) to ([\d.]+); trueup ([\d.]+) to ([\d.]+)</title>", drawn)
    assert len(rows) == figure.N_SETS
    told = [figure.Row(float(t), (float(a), float(b)), (float(c), float(d))) for t, a, b, c, d in rows]
    assert f"holds the truth {sum(row.holds('key') for row in told)} times" in drawn
    assert f"holds it {sum(row.holds('ours') for row in told)} times" in drawn
    row = figure.measure(3)
    assert row.true == pytest.approx(told[3].true, abs=0.001)
    assert row.key == pytest.approx(told[3].key, abs=0.001)
    assert row.ours == pytest.approx(told[3].ours, abs=0.01)  # draws: another numpy may give others


def numbers(picture: str) -> list[float]:
    """What is drawn where, and the numbers in words."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", picture)]


@pytest.mark.parametrize("name", ["flow", "rates", "votes"])
def test_a_picture_is_what_its_script_computes(name):
    stored = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert numbers(stored) == pytest.approx(numbers(site_module("pictures").PICTURES[name]()), abs=0.11)  # of a pixel


@pytest.mark.slow
@pytest.mark.parametrize("name", ["active", "cleaning", "drift", "first", "judges"])
def test_a_picture_of_draws_is_about_what_its_script_computes(name):
    stored = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    drawn = site_module("pictures").PICTURES[name]()
    assert len(numbers(stored)) == len(numbers(drawn))
    assert numbers(stored) == pytest.approx(numbers(drawn), abs=15)  # draws: another numpy may give others


def test_the_numbers_of_the_readme_are_those_of_its_picture():
    told = re.search('aria-label="([^"]+)', (ROOT / "docs" / "pictures" / "first.svg").read_text(encoding="utf-8"))[1]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for interval in re.findall(r"\d\.\d\d to \d\.\d\d", told):
        assert text.count(interval) == 2, "once in the words for the picture, once below it"
    assert f"The true accuracy is {re.findall(r'[0-9.]+[0-9]', told)[-1]}." in text


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.stem)
def test_every_drawing_has_words(path):
    assert re.search(r'<svg [^>]*role="img"[^>]*>\s*<title>[^<]{25,}</title>', path.read_text(encoding="utf-8"))


# In a browser, from the disk.


@pytest.mark.browser
def test_the_search_works_from_the_disk(site, browser):
    browser.resize(1280)
    browser.open(site / "guide" / "evaluate.html")
    browser.evaluate("""
        document.querySelector('[data-md-toggle=search]').click();
        const query = document.querySelector('[data-md-component=search-query]');
        query.focus();
        query.value = 'sensitivity';
        query.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true, key: 'y' }));
    """)
    until, links = time.monotonic() + 60, []
    while not links and time.monotonic() < until:
        time.sleep(0.1)
        links = browser.evaluate("[...document.querySelectorAll('.md-search-result__link')].map(a => a.href)")
    assert any("trueup.Evaluation.sensitivity" in link for link in links)
    assert browser.complaints == []
    assert {request.partition(":")[0] for request in browser.requests} <= {"file", "data"}


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", "judges", "which-method", "guide/evaluate", "guide/noise", "papers"])
def test_nothing_is_wider_than_the_page_at_200_percent(site, browser, name):
    browser.resize(640)  # what is left of 1280 pixels
    browser.open(site / f"{name}.html")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 640


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["default", "slate"])
@pytest.mark.parametrize(
    "name", ["index", *(pytest.param(name, marks=pytest.mark.slow) for name in ("judges", "guide/evaluate"))]
)
def test_pages_are_accessible(site, browser, name, scheme):
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is part of trueup[dev]")
    script = next(Path(axe.__file__).parent.rglob("axe*.js")).read_text(encoding="utf-8")
    browser.resize(1280)
    browser.open(site / f"{name}.html")
    still = "document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important }</style>')"
    browser.evaluate(f"{still}; document.body.setAttribute('data-md-color-scheme', '{scheme}')")
    browser.evaluate(f"{script}; 1")
    asked = "axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html.slice(0, 80)).join()]))"
    assert [found for found in browser.evaluate(asked) if found[0] in {"serious", "critical"}] == []


# The readers themselves.


def test_the_checker_sees_what_is_wrong(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        '<h1 id="top">a</h1><a href="#top">b</a><a href="#no">c</a><a href="gone.html">d</a><img src="x.png">'
        '<script src="https://cdn.example/x.js"></script><p style="background: url(//cdn.example/y.png)">',
        encoding="utf-8",
    )
    page = Page(path)
    assert [broken(page, a, tmp_path, {path: page}) for a in page.links] == [None, "no such anchor", "no such file"]
    assert [is_external(a) for a in page.fetched] == [False, True, True]
    assert page.without_alt == ["x.png"]


def site_module(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "_site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_formulas_become_mathml():
    drawn = site_module("hooks").to_mathml(r'<p><span class="arithmatex">\(a &lt; \frac{1}{2}\)</span></p>')
    assert drawn.startswith("<p><math")
    assert "<mfrac>" in drawn
    assert "&lt;" in drawn.replace("&#x0003C;", "&lt;")


def test_docstrings_become_markdown():
    text = (
        "Sum :math:`a_i` [1]_.\n\n"
        ".. math:: x = 1\n    + 2\n\nThen:\n\n- a\n\n  .. math::\n\n      a &= b \\\\\n      c &= d\n\n"
        "Parameters\n----------\nn, m : int. How many.\nb : float\n\nReferences\n----------\n.. [1] A, b : c.\n"
    )
    found = site_module("docstrings").as_markdown(text)
    assert "Sum $a_i$ [1]." in found
    assert "$$\nx = 1\n+ 2\n$$" in found
    assert "\\begin{aligned}\na &= b" in found
    assert "n : int\n    How many.\nm : int\n    How many.\nb : float\n" in found
    assert found.endswith("\n[1] A, b : c.")


def test_no_marks_of_restructuredtext_are_left(site):
    marks = re.compile(r":math:|\.\. math|<p>\.\. |\[\d\]_\W")
    assert not [p.name for p in (site / "api").glob("*.html") if marks.search(p.read_text(encoding="utf-8"))]
