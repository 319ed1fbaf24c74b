"""The report in a real browser: no complaint, no request, nothing wider than a phone."""

from itertools import pairwise

import pytest

from trueup.report import save_report

pytestmark = pytest.mark.browser

CASES = ("two_classes", "two_systems", "hostile", "comparison_alone", "over_time", "rates", "contests")
CONTRAST = """
(() => {
  const luminance = c => { const [r, g, b] = c.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126*r + 0.7152*g + 0.0722*b };
  const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
      return (x + 0.05) / (y + 0.05) };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
      if (/^rgb\\(/.test(c)) return c } return 'rgb(255, 255, 255)' };
  let least = 99;
  for (const e of document.querySelectorAll('p, h1, h2, h3, th, td, small, a, li, dt, dd, strong, caption, figcaption'))
    if (e.textContent.trim()) least = Math.min(least, ratio(getComputedStyle(e).color, behind(e)));
  for (const e of document.querySelectorAll('svg text'))
    least = Math.min(least, ratio(getComputedStyle(e).fill, behind(e)));
  return least;
})()
"""

WORDS_ON_WORDS = """
[...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
  const words = [...svg.querySelectorAll('text:not([transform])')].map(t => [t.textContent, t.getBoundingClientRect()]);
  const meet = (p, q) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&
      Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4;
  return words.flatMap(([a, p], k) => words.slice(k + 1).filter(([b, q]) => meet(p, q)).map(([b]) => [a, b]));
})
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("pages")
    return {name: save_report(request.getfixturevalue(name).data, folder / f"{name}.html") for name in CASES}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_report_opens(browser, pages, name, width, dark):
    browser.resize(width, dark=dark)
    browser.open(pages[name])
    assert browser.complaints == []
    assert browser.requests == [pages[name].resolve().as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(CONTRAST) >= 4.5
    levels = browser.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    # Every picture is there, has a size and stays within the page.
    sizes = browser.evaluate(
        "[...document.querySelectorAll('svg[role=img]')].map(s => s.getBoundingClientRect())"
        ".map(r => [r.width, r.height, r.right])"
    )
    assert sizes
    assert all(wide > 100 and high > 20 and right <= width for wide, high, right in sizes)
    assert browser.evaluate(WORDS_ON_WORDS) == []


def test_the_answer_is_on_the_first_screen(browser, pages, two_systems):
    browser.resize(1280)
    browser.open(pages["two_systems"])
    words = browser.evaluate("document.querySelector('#answer').innerText")
    for system in two_systems.data["systems"]:
        assert f"{system['answer']['claim']} {system['answer']['value']}" in " ".join(words.split())
        assert all(sentence in " ".join(words.split()) for sentence in system["answer"]["sentences"])
    assert two_systems.data["verdict"][0] in words
    assert browser.evaluate("document.querySelector('.verdict').getBoundingClientRect().bottom") < 900


def test_hostile_names_do_nothing(browser, pages):
    browser.resize(390)
    browser.open(pages["hostile"])
    assert browser.evaluate("document.scripts.length + document.images.length") == 0
    assert browser.evaluate("document.title") == "<script>alert(3)</script>"
    assert "=cmd('calc')!A1" in browser.evaluate("document.body.innerText")


@pytest.mark.parametrize("name", CASES)
def test_tables_fit_a_phone_and_charts_fill_the_width(browser, pages, name):
    browser.resize(390)
    browser.open(pages[name])
    boxes = browser.evaluate("[...document.querySelectorAll('.scroll')].map(b => [b.scrollWidth, b.clientWidth])")
    assert all(inside <= shown <= 390 for inside, shown in boxes)
    browser.resize(1280)
    browser.open(pages[name])
    charts = "[...document.querySelectorAll('svg.fluid')].map(s => [s, s.parentElement].map(e => e.clientWidth))"
    assert all(own >= 0.9 * room for own, room in browser.evaluate(charts))
    rows = "[...document.querySelectorAll('.figures')].map(f => [f.lastElementChild.getBoundingClientRect().right, "
    rows += "f.getBoundingClientRect().right, f.children.length])"
    assert all(last >= 0.95 * right for last, right, n in browser.evaluate(rows) if n < 3)
