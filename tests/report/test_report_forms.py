"""The forms of a report: HTML, Markdown and files."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from trueup._base.wording import decimals, interval, number
from trueup.exceptions import InvalidParameter, TrueupError
from trueup.report import render_html, render_markdown, save_report
from trueup.report.figures import Drawing

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Checker(HTMLParser):
    """Collects what a page is made of and complains about tags that do not match."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.headings, self.ids, self.tags, self.words = [], [], [], [], [], []
        self.links, self.headers = [], []
        self.feed(page)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        if tag == "th":
            self.headers.append(found.get("scope"))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing at {self.getpos()}")

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_is_sound(any_report):
    page = Checker(render_html(any_report))
    assert not page.problems
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert len(set(page.ids)) == len(page.ids)
    assert page.headers
    assert set(page.headers) <= {"col", "row"}
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert dict(page.tags[1:])["meta"]
    assert next(found for tag, found in page.tags if tag == "html")["lang"] == "en"


def test_the_page_asks_for_nothing_and_runs_nothing(any_report):
    page = Checker(render_html(any_report))
    tags = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(tags)
    names = {name for _, found in page.tags for name in found}
    assert not {name for name in names if name.startswith("on")} | ({"src", "srcset", "xlink:href"} & names)
    assert all(link.startswith("#") for link in page.links)
    policy = next(f["content"] for _, f in page.tags if f.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "url(" not in render_html(any_report)
    assert "@import" not in render_html(any_report)


def test_every_picture_is_xml_with_a_title(any_report):
    whole = r"<svg xmlns.*?</svg>(?!<(?:svg|path|rect|circle|line|text)|</svg>)"  # paths lie in pictures of their own
    pictures = re.findall(whole, render_html(any_report), flags=re.DOTALL)
    assert pictures
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        title = root.find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text
        assert root.get("role") == "img"
        assert root.get("aria-label") == title.text
        assert "nan" not in picture.lower()


def test_hostile_names_are_shown_and_not_obeyed(hostile):
    page = render_html(hostile.data)
    assert "<script" not in page
    assert "<img" not in page
    assert "</svg><b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "x" * 61 not in page
    words = " ".join(Checker(page).words)
    assert "=cmd('calc')!A1" in words
    assert "line break" in " ".join(words.split())
    assert "<img src=x onerror=alert(1)>" in words


def test_hostile_names_do_not_break_markdown(hostile):
    page = render_markdown(hostile.data)
    assert "<" not in page.replace("&lt;", "").split("```")[0]
    assert not re.search(r"(?<!\\)\]\(", page), "a name has become a link"
    for block in re.findall(r"(?:^\|.*\n)+", page, flags=re.MULTILINE):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(columns) == 1, block
    fence = re.findall(r"^(`{3,})sh$", page, flags=re.MULTILINE)[0]
    assert page.rstrip().endswith(f"\n{fence}")
    assert len(fence) == 4  # the file's name has a fence of three


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_pages_show_the_numbers_of_the_data(two_systems, render):
    page = render(two_systems.data)
    for system in two_systems.data["systems"]:
        assert system["answer"]["value"] in page
        for metric in system["metrics"]:
            places = decimals(metric["low"], metric["high"])
            assert number(metric["mean"], places) in page
            assert interval(metric["low"], metric["high"], places) in page
    for pair in two_systems.data["comparison"]["pairs"]:
        assert interval(pair["low"], pair["high"], decimals(pair["low"], pair["high"])) in page
    assert "n_draws=300" in page


@pytest.mark.parametrize("part", ["labelers", "dependence", "vet_next", "comparison"])
def test_a_part_with_nothing_to_say_is_left_out(two_systems, part):
    data = {**two_systems.data, part: None}
    without = Checker(render_html(data))
    assert part.replace("_", "-") in Checker(render_html(two_systems.data)).ids
    assert part.replace("_", "-") not in without.ids
    assert not without.problems
    assert len(render_markdown(data)) < len(render_markdown(two_systems.data))


def test_hundreds_of_labelers_and_systems_are_folded(two_systems):
    labelers, compared = two_systems.data["labelers"], two_systems.data["comparison"]
    row, system = labelers["rows"][0], compared["systems"][0]
    rows = [{**row, "labeler": f"labeler-{k}", "votes": 10 * k + 1} for k in range(300)]
    systems = [{**system, "system": f"system-{k}", "rank": k + 1} for k in range(40)]
    data = {**two_systems.data, "labelers": {**labelers, "rows": rows}, "comparison": {**compared, "systems": systems}}
    page = render_html(data)
    assert "The other 280 labelers" in page
    assert "The other 28 systems" in page
    assert "labeler-150" in page
    assert "labeler-150" not in render_markdown(data)


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_other_data_are_refused(render):
    with pytest.raises(InvalidParameter, match="format 1"):
        render({"format": 99})


def test_files_by_suffix(two_classes, tmp_path):
    for name, start in (("a.html", "<!doctype html>"), ("a.HTM", "<!doctype html>"), ("a.md", "# "), ("a.json", "{")):
        path = save_report(two_classes.data, tmp_path / name)
        assert path.read_text(encoding="utf-8").startswith(start)
    with pytest.raises(InvalidParameter, match=r"html, \.md or \.json"):
        save_report(two_classes.data, tmp_path / "a.pdf")
    with pytest.raises(TrueupError, match="does not exist"):
        save_report(two_classes.data, tmp_path / "no" / "a.html")


def test_a_drawing_escapes_what_it_is_told():
    d = Drawing(10, 10, 'a "<title>" & more')
    d.text("name", 1, 1, "</text><script>")
    d.circle("dot", 1, 1, 1, label="<&>")
    root = ElementTree.fromstring(d.render())
    assert root.get("aria-label") == 'a "<title>" & more'
    assert [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")] == ["</text><script>"]
