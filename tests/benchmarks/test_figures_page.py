"""The pages of figures hold what is stored and nothing else, and every command that measures is listed."""

import re
from pathlib import Path

import pytest

from benchmarks import _figure_pages, figures
from benchmarks._results import Result, code_in, hashes_of, repetitions_in, tables_in

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(figures.FOLDER.glob("*.md"))}
FIRST = figures.FIRST_PAGE.read_text(encoding="utf-8")
MAKE = "run `python -m benchmarks.figures --page`"


@pytest.mark.parametrize("page", [FIRST, *PAGES.values()], ids=["first", *PAGES])
def test_a_page_is_what_the_stored_results_make_it(page):
    made = figures.page_with(page)
    assert _figure_pages.without_marks(made) == _figure_pages.without_marks(page), MAKE


def test_the_pictures_are_those_of_the_stored_results():
    there = {path.name: path.read_text(encoding="utf-8") for path in figures.FOLDER.glob("*.svg")}
    assert there == figures.pictures(), MAKE


def test_every_page_lists_its_outputs_once():
    blocks = [
        (page, name)
        for page, text in PAGES.items()
        for _, kind, name, _ in figures.BLOCK.findall(text)
        if kind == "begin"
    ]
    assert sorted(blocks) == sorted((page, page) for page in {figure.page for figure in figures.FIGURES.values()})


@pytest.mark.parametrize("name", PAGES)
def test_the_prose_has_no_figure_of_its_own(name):
    prose = figures.BLOCK.sub("", PAGES[name])
    assert set(re.findall(r"\d+\.\d+|\d+ ?%", prose)) <= {"95%"}, "a measured number comes from a stored result"


def test_a_figure_without_a_stored_result_cannot_appear():
    rows = [row for rows in _figure_pages.asked_rows().values() for row in rows]
    lacking = [row for row in rows if figures.stored(figures.FIGURES[row.figure]) is None]
    for row in lacking:
        made = _figure_pages.table_of([row], {}, {}, {row.figure: "command"})
        assert made.splitlines()[-1] == f"| {row.what} | {row.asked} | {_figure_pages.NOT_RUN} | `command` |"
    for headline in _figure_pages.headlines():
        is_there = figures.stored(figures.FIGURES[headline.figure]) is not None
        assert (f"](figures/{headline.name}.svg)" in FIRST) == is_there


@pytest.mark.parametrize(
    "name", [name for name, figure in figures.FIGURES.items() if figures.stored(figure) is not None]
)
def test_the_data_beside_an_output_are_those_of_the_output(name):
    figure = figures.FIGURES[name]
    text, result = figures.stored(figure), Result.read(figure.data)
    body = text.split("\n", 2)[2]
    assert (result.tables, result.repetitions) == (tables_in(body), repetitions_in(body)), MAKE
    assert result.command == figure.line
    assert result.versions["trueup"] in text.splitlines()[1]


def commands() -> set[str]:
    """The modules that measure: public modules of benchmarks/ with a command, and the experiments."""
    modules = {
        f"benchmarks.{path.stem}"
        for path in (ROOT / "benchmarks").glob("[!_]*.py")
        if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    experiments = {f"experiments.{path.parent.name}" for path in (ROOT / "experiments").glob("*/__main__.py")}
    return (modules | experiments) - {"benchmarks.figures"}


def test_every_command_is_listed():
    listed = {figure.command[1] for figure in figures.FIGURES.values() if figure.command[0] == "-m"}
    assert listed == commands(), "list it in benchmarks/figures.py, or take it off"


def test_every_command_that_the_page_names_is_listed():
    text = "\n".join([FIRST, *PAGES.values()])
    named = set(re.findall(r"`python (?:-m )?((?:benchmarks|experiments|tests)[\w./]+)", text))
    known = {word for figure in figures.FIGURES.values() for word in figure.command}
    assert named <= known | {"benchmarks.figures"}


def test_no_stored_output_is_left_over():
    assert {path.stem for path in figures.RESULTS.glob("*.*")} <= figures.FIGURES.keys()


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_stored_output_has_its_command_and_nothing_of_the_machine(name):
    text = figures.stored(figures.FIGURES[name])
    if text is None:
        return  # the page says that it was not run
    assert text.startswith(f"$ {figures.FIGURES[name].line}\ntrueup ")
    assert not re.search(r"(?:^|[\s'\"])/(?:home|root|Users|tmp|work|var)/", text)
    assert "```" not in text


TABLE = """
=== speed (3 s) ===
100 runs of each
set     holds %  width
----------------------
first  95.0 ± 1  0.100
second       94  0.200
"""


def test_tables_of_a_text_are_read():
    (table,) = tables_in(figures.clean(TABLE))
    assert (table.section, table.title, table.head) == ("speed", "100 runs of each", ["set", "holds %", "width"])
    assert table.cell("first", "holds %") == "95.0 ± 1"
    assert table.cell("…cond", "2") == "0.200"
    with pytest.raises(KeyError, match="no row is 'third'"):
        table.cell("third", "1")
    assert repetitions_in(TABLE) == ["100 runs"]


@pytest.mark.parametrize(
    ("cell", "limit", "missed"),
    [
        ("94.0", "at least 94", False),
        ("93.9", "at least 94", True),
        ("92.1 ± 1.0%", "at least 94", False),  # two standard errors are granted
        ("91.9 ± 1.0%", "at least 94", True),
        ("0.3105", "at most 0.30", True),
        ("77,832", "at most 36000", True),
        ("98.9 ± 0.5", "93 to 97", True),
        ("97.9 ± 0.5", "93 to 97", False),
        ("-0.0072 ± 0.0011", "-0.005 to 0.005", False),
        ("−0.0075 ± 0.0011", "-0.005 to 0.005", True),
        ("1.1e-16 on COCO", "at most 1e-6", False),
        ("11 of 15", "at least 12", True),
    ],
)
def test_what_misses_a_limit_is_set_in_bold(cell, limit, missed):
    result = Result("command", {"trueup": "0"}, "here")
    shown = _figure_pages.filled(f"{{~value (.+) :: {limit}}} as asked", f"value {cell}", result)
    assert shown == (f"**{cell}** as asked" if missed else f"{cell} as asked")


@pytest.fixture
def sandbox(tmp_path, monkeypatch):
    """One figure that is quick, with pages and a folder of its own."""
    script = tmp_path / "measure.py"
    code = "import sys, numpy as np; np.random.default_rng(7)\nprint('value 1' if len(sys.argv) < 2 else sys.argv[1])"
    script.write_text(code, encoding="utf-8")
    page = tmp_path / "figures" / "page.md"
    page.parent.mkdir()
    page.write_text("prose\n\n<!-- begin: page -->\n<!-- end -->\n\nmore\n", encoding="utf-8")
    (tmp_path / "figures.md").write_text("first\n", encoding="utf-8")
    asked = tmp_path / "asked.toml"
    asked.write_text("headline = []\n", encoding="utf-8")
    monkeypatch.setattr(figures, "FIGURES", {"small": figures.Figure("small", (str(script),), "page")})
    monkeypatch.setattr(figures, "FIRST_PAGE", tmp_path / "figures.md")
    monkeypatch.setattr(figures, "FOLDER", page.parent)
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results")
    for function in ("asked_rows", "headlines"):
        original = getattr(_figure_pages, function)
        monkeypatch.setattr(_figure_pages, function, lambda original=original: original(asked))
    return tmp_path


def test_measuring_stores_and_writes_the_page_and_goes_on_where_it_stopped(sandbox, capsys):
    assert figures.main([]) == 0
    text = (sandbox / "results" / "small.txt").read_text(encoding="utf-8")
    assert text == f"{figures.header(figures.FIGURES['small'])}\nvalue 1\n"
    page = sandbox / "figures" / "page.md"
    made = page.read_text(encoding="utf-8")
    assert made.startswith("prose\n")
    assert made.endswith("<!-- end -->\n\nmore\n")
    assert "`benchmarks/results/small.txt`" in made
    result = Result.read(sandbox / "results" / "small.json")
    assert result.seeds == [7, 7, 1]
    assert result.modules == hashes_of(result.modules)
    assert result.changed_modules == []
    (sandbox / "measure.py").write_text("print('value 2')", encoding="utf-8")
    assert figures.main([]) == 0
    assert "stored already" in capsys.readouterr().err
    assert figures.stored(figures.FIGURES["small"]).endswith("value 1\n")
    assert figures.main(["small", "--again"]) == 0
    assert figures.stored(figures.FIGURES["small"]).endswith("value 2\n")


def test_words_about_code_are_not_code():
    bare = "def f(x):\n    return '# ' + x\n"
    told = (
        '"""Why."""\n\n\n# How.\ndef f(x):\n    """What.\n\n    More.\n    """\n    # Aside.\n    return \'# \' + x\n'
    )
    assert code_in(told) == code_in(bare)
    assert code_in(told.replace("+ x", "+ x + x")) != code_in(bare)


@pytest.mark.parametrize(
    ("code", "said"), [("raise SystemExit(3)", "status 3"), ("print('skipped: no data here')", "no data here")]
)
def test_what_fails_or_lacks_its_data_is_not_stored(sandbox, capsys, code, said):
    (sandbox / "measure.py").write_text(code, encoding="utf-8")
    assert figures.main([]) == 1
    assert said in capsys.readouterr().err
    assert not (sandbox / "results").exists()
