"""The texts are true: their code runs, their links lead somewhere, and the API page lists the API.

In README.md, CONTRIBUTING.md and docs/ every block marked ``python`` is run, the blocks of a file one after the other
in one namespace and in an empty folder. A block marked ``text`` right after it must be what it printed.
"""

import contextlib
import importlib
import importlib.util
import inspect
import io
import re
import sys
import tomllib
import types
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import trueup
from trueup import active, cleaning, estimators
from trueup.adapters import ADAPTERS
from trueup.cli import COMMANDS
from trueup.metrics import METRICS
from trueup.noise.registry import MODELS

ROOT = Path(__file__).parents[1]
AT_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "THIRD_PARTY_NOTICES.md")
TEXTS = [*(ROOT / name for name in AT_THE_ROOT), *sorted((ROOT / "docs").rglob("*.md"))]
API = ROOT / "docs" / "api.md"
REGISTRIES = (
    MODELS,
    METRICS,
    estimators.METHODS,
    active.STRATEGIES,
    active.ESTIMATORS,
    cleaning.STRATEGIES,
    COMMANDS,
    ADAPTERS,
)

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a text."""

    language: str
    code: str
    line: int  # of its first line
    printed: str | None = None  # what the text says it prints


def blocks_of(text: str) -> list[Block]:
    found, fences = [], list(FENCE.finditer(text))
    for k, fence in enumerate(fences):
        line = text.count("\n", 0, fence.start(2)) + 1
        after = fences[k + 1] if k + 1 < len(fences) else None
        is_output = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
        found.append(Block(fence[1], fence[2], line, after[2] if after and is_output else None))
    return found


def prose_of(text: str) -> str:
    return FENCE.sub("", text)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def with_blocks(language: str) -> list[Path]:
    return [path for path in TEXTS if any(b.language == language for b in blocks_of(path.read_text(encoding="utf-8")))]


@pytest.fixture
def own_parts():
    """Noise models and metrics that a text registers are forgotten after it."""
    with contextlib.ExitStack() as stack:
        for registry in REGISTRIES:
            stack.enter_context(registry.preserved())
        yield


@pytest.mark.usefixtures("own_parts")
@pytest.mark.parametrize("path", with_blocks("python"), ids=name_of)
def test_code_runs_and_prints_what_the_text_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = types.ModuleType("page")  # a module that exists, so that what a text defines can be pickled
    monkeypatch.setitem(sys.modules, "page", page)
    for block in blocks_of(path.read_text(encoding="utf-8")):
        if block.language != "python":
            continue
        # Blank lines in front let a traceback name the line of the text.
        code = compile("\n" * (block.line - 1) + block.code, str(path), "exec")
        printed = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
            warnings.simplefilter("error")
            exec(code, vars(page))
        if block.printed is not None:
            assert printed.getvalue() == block.printed, f"{name_of(path)}, line {block.line}"
    said = [told for value in vars(page).values() if isinstance(told := getattr(value, "warnings", None), tuple)]
    assert not [sentence for told in said for sentence in told if "not mixed" in sentence], "chains must have mixed"


def console_commands() -> list[tuple[str, str]]:
    found = []
    for path in TEXTS:
        for block in blocks_of(path.read_text(encoding="utf-8")):
            if block.language == "console":
                found += [(name_of(path), line[2:].strip()) for line in block.code.splitlines() if line[:2] == "$ "]
    return found


@pytest.mark.parametrize(("where", "command"), console_commands())
def test_commands_exist(where, command):
    words = command.split()
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert words[1] in targets, f"{where} names a target that the Makefile does not have"
    elif words[0] == "trueup":
        if importlib.util.find_spec("trueup.cli") is None:
            pytest.skip("there is no command line yet")
        commands = cli_commands()
        assert len(words) < 2 or words[1].startswith("-") or words[1] in commands, f"{where}: trueup has {commands}"
    elif words[:3] == ["python", "-m", "pytest"] or words[0] == "pip":
        pass
    elif words[:2] == ["python", "-m"]:
        assert (ROOT / Path(*words[2].split(".")).with_suffix(".py")).is_file(), f"{where}: there is no {words[2]}"


def cli_commands() -> list[str]:
    import typer

    return sorted(getattr(typer.main.get_command(importlib.import_module("trueup.cli").app), "commands", {}))


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_named_extras_exist(path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(r"trueup\[([\w,-]+)\]", path.read_text(encoding="utf-8"))
    named = {name for group in extras for name in group.split(",")}
    assert named <= project["optional-dependencies"].keys()


def slug(heading: str) -> str:
    """The anchor of a heading: lower case, no punctuation, hyphens for blanks."""
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_links_lead_somewhere(path):
    for target in LINK.findall(prose_of(path.read_text(encoding="utf-8"))):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        assert page.exists(), f"{name_of(path)} links to {target}, which does not exist"
        assert page.is_relative_to(ROOT), f"{name_of(path)} links out of the project: {target}"
        if anchor:
            anchors = [slug(h) for h in HEADING.findall(prose_of(page.read_text(encoding="utf-8")))]
            assert anchor in anchors, f"{name_of(path)} links to {target}; the headings are {anchors}"


def test_every_page_can_be_reached_from_the_index():
    index, figures = ROOT / "docs" / "index.md", ROOT / "docs" / "figures.md"
    targets = LINK.findall(index.read_text(encoding="utf-8") + figures.read_text(encoding="utf-8"))
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in targets}
    pages = set((ROOT / "docs").rglob("*.md")) - {index}
    assert not {name_of(page) for page in pages - linked}


def topics() -> dict[str, str]:
    """The pages that are read, without the figures and the list of names."""
    left_out = {ROOT / "docs" / "api.md", ROOT / "docs" / "figures.md", *(ROOT / "docs" / "figures").glob("*.md")}
    return {name_of(path): path.read_text(encoding="utf-8") for path in {*(ROOT / "docs").rglob("*.md")} - left_out}


def test_the_documentation_stays_short():
    assert len(topics()) <= 25, "a topic has one page; put it where the topic is"
    assert sum(len(text.split()) for text in topics().values()) <= 32_200


@pytest.mark.parametrize(("name", "text"), sorted(topics().items()), ids=sorted(topics()))
def test_pages_begin_with_an_answer_and_use_plain_words(name, text):
    if name.startswith("docs/guide/") or name in {"docs/judges.md", "docs/scale.md"}:
        assert "**Quick answer.**" in text.split("\n## ")[0]
    assert not re.search(r"told apart|no warrant|in the middle\b", prose_of(text))


def methods() -> list[str]:
    """All that can be chosen by name: evaluation methods, noise models, and how items are vetted."""
    return sorted(
        {name for kind in (MODELS, estimators.METHODS, active.STRATEGIES, active.ESTIMATORS) for name in kind}
    )


@pytest.mark.parametrize("name", methods())
def test_every_method_is_explained(name):
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "guide").glob("*.md")]
    assert any(re.search(rf"`\"?{re.escape(name)}\"?`", page) for page in pages), f"no page of docs/guide has `{name}`"


@pytest.mark.parametrize("name", ADAPTERS.names())
def test_every_format_is_in_the_table_of_exports(name):
    page = (ROOT / "docs" / "guide" / "cli.md").read_text(encoding="utf-8")
    assert re.search(rf"^\|.*`{re.escape(name)}`", page, re.MULTILINE), f"docs/guide/cli.md has no row for `{name}`"


def named_functions() -> list[str]:
    """What the tables of formulas of papers and of the core say computes them."""
    pages = [ROOT / "docs" / "papers.md", ROOT / "docs" / "guide" / "evaluate.md"]
    rows = [row for page in pages for row in re.findall(r"^\| .*$", page.read_text(encoding="utf-8"), re.MULTILINE)]
    return sorted({name for row in rows for name in re.findall(r"`(trueup[\w.]+)`", row)})


@pytest.mark.parametrize("name", named_functions())
def test_the_functions_of_formulas_exist(name):
    if name.startswith("trueup.training.torch."):
        pytest.importorskip("torch")
    assert callable(named(name))


def named(path: str) -> object:
    """A function of a module, or a method of a class in one."""
    owner, _, attribute = path.rpartition(".")
    try:
        return getattr(importlib.import_module(owner), attribute)
    except ModuleNotFoundError:
        return getattr(named(owner), attribute)


def test_the_papers_have_a_table_each():
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert len(sections) == 6
    assert all("| formula | what | function |" in section for section in sections)


def public_modules() -> dict[str, types.ModuleType]:
    """trueup, the modules that ``trueup.__all__`` names, and the packages that export names themselves."""
    names = {name for name in trueup.__all__ if inspect.ismodule(getattr(trueup, name))}
    for path in Path(trueup.__file__).parent.glob("[!_]*/__init__.py"):
        if hasattr(importlib.import_module(f"trueup.{path.parent.name}"), "__all__"):
            names.add(path.parent.name)
    if importlib.util.find_spec("torch"):  # the only package in a package: it needs an extra
        names.add("training.torch")
    modules = {f"trueup.{name}": importlib.import_module(f"trueup.{name}") for name in sorted(names)}
    return {"trueup": trueup} | {name: module for name, module in modules.items() if hasattr(module, "__all__")}


def documented() -> dict[str, list[str]]:
    """The names that docs/api.md lists under the heading of each module."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^## ", API.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        found[section.splitlines()[0].strip("` ")] = re.findall(r"^- `([\w.]+)`: \S", section, re.MULTILINE)
    return found


def line_for(module: types.ModuleType, name: str) -> str:
    about = (inspect.getdoc(getattr(module, name)) or "…").splitlines()[0]
    return f"- `{name}`: {about}"


def test_the_api_page_has_the_modules():
    assert list(documented()) == list(public_modules())


@pytest.mark.parametrize("name", public_modules())
def test_the_api_page_lists_exactly_the_public_names(name):
    module, listed = public_modules()[name], documented().get(name, [])
    missing = [line_for(module, n) for n in sorted(module.__all__) if n not in listed]
    assert not missing, f"add to docs/api.md under ## `{name}`:\n" + "\n".join(missing)
    assert not set(listed) - set(module.__all__), f"docs/api.md lists what {name} does not have"
    assert len(set(listed)) == len(listed)


# The reader of texts itself.


def test_blocks_know_their_line_and_their_output():
    text = "a\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\nx\n```\nsee\n```text\nno output\n```\n"
    first, _, second, _ = blocks_of(text)
    assert (first.language, first.code, first.line, first.printed) == ("python", "print(1)\n", 3, "1\n")
    assert (second.line, second.printed) == (11, None)


def test_slugs_are_those_of_the_usual_renderers():
    assert slug("What `right` means, here") == "what-right-means-here"
