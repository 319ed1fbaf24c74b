"""The page of figures holds what is stored, and every command that measures is listed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import figures

ROOT = Path(__file__).parents[2]
PAGE = figures.PAGE.read_text(encoding="utf-8")


def test_the_page_is_what_the_stored_outputs_make_it():
    assert figures.page_with(PAGE) == PAGE, "run `python -m benchmarks.figures --page`"


def test_every_figure_has_its_block_under_its_heading():
    found = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        for _, name, _ in figures.BLOCK.findall(section):
            assert name not in found
            found[name] = section.splitlines()[0]
    assert found == {name: figure.section for name, figure in figures.FIGURES.items()}


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
    named = set(re.findall(r"`python (?:-m )?((?:benchmarks|experiments|tests)[\w./]+)", PAGE))
    known = {word for figure in figures.FIGURES.values() for word in figure.command}
    assert named <= known | {"benchmarks.figures"}


def test_no_stored_output_is_left_over():
    assert {path.stem for path in figures.RESULTS.glob("*.txt")} <= figures.FIGURES.keys()


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_stored_output_has_its_command_and_nothing_of_the_machine(name):
    text = figures.stored(figures.FIGURES[name])
    if text is None:
        return  # measured by hand so far; the page says so
    assert text.startswith(f"$ {figures.FIGURES[name].line}\ntrueup ")
    assert not re.search(r"(?:^|[\s'\"])/(?:home|root|Users|tmp|work|var)/", text)
    assert "```" not in text


def test_seconds_of_sections_and_paths_are_taken_off():
    printed = "\n=== real (53 s) ===\na  1.2 s  \n/somewhere/data/x.csv\n\ntable10  (7 s)\n\n"
    expected = "=== real ===\na  1.2 s\n$DATA/x.csv\n\ntable10\n"
    assert figures.clean(printed, folders=[("/somewhere/data", "$DATA")]) == expected


@pytest.fixture
def sandbox(tmp_path, monkeypatch):
    """One figure that is quick, with a page and a folder of its own."""
    script = tmp_path / "measure.py"
    script.write_text("import sys; print('value 1' if len(sys.argv) < 2 else sys.argv[1])", encoding="utf-8")
    page = tmp_path / "figures.md"
    page.write_text("prose\n\n<!-- begin: small -->\n<!-- end -->\n\nmore\n", encoding="utf-8")
    monkeypatch.setattr(figures, "FIGURES", {"small": figures.Figure("small", (str(script),), "Section")})
    monkeypatch.setattr(figures, "PAGE", page)
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results")
    return tmp_path


def test_measuring_stores_and_writes_the_page_and_goes_on_where_it_stopped(sandbox, capsys):
    assert figures.main([]) == 0
    text = (sandbox / "results" / "small.txt").read_text(encoding="utf-8")
    assert text == f"{figures.header(figures.FIGURES['small'])}\nvalue 1\n"
    page = (sandbox / "figures.md").read_text(encoding="utf-8")
    assert page.startswith("prose\n")
    assert page.endswith("<!-- end -->\n\nmore\n")
    assert f"```text\n{text}```" in page
    (sandbox / "measure.py").write_text("print('value 2')", encoding="utf-8")
    assert figures.main([]) == 0
    assert "stored already" in capsys.readouterr().err
    assert "value 1" in (sandbox / "figures.md").read_text(encoding="utf-8")
    assert figures.main(["small", "--again"]) == 0
    assert "value 2" in (sandbox / "figures.md").read_text(encoding="utf-8")


def test_a_quick_run_stores_nothing(sandbox, capsys):
    assert figures.main(["--quick"]) == 0
    assert capsys.readouterr().out == "--quick\n"
    assert not (sandbox / "results").exists()


@pytest.mark.parametrize(
    ("code", "said"), [("raise SystemExit(3)", "status 3"), ("print('skipped: no data here')", "no data here")]
)
def test_what_fails_or_lacks_its_data_is_not_stored(sandbox, capsys, code, said):
    (sandbox / "measure.py").write_text(code, encoding="utf-8")
    assert figures.main([]) == 1
    assert said in capsys.readouterr().err
    assert not (sandbox / "results").exists()


def test_an_unknown_name_is_one_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.figures", "nonsense"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "unknown figures nonsense" in done.stderr
