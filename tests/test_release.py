"""What a release needs beside the code: versions agree, papers are cited, notices are whole, bounds are as agreed."""

import re
import tomllib
from pathlib import Path

import pytest

import trueup

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOOLS = {"dev", "docs"}  # extras of this project's own work; others are for users


def requirements(extras: set[str]) -> list[str]:
    """What the extras ask for, without those that only name other extras."""
    optional = PROJECT["optional-dependencies"]
    asked = [line for name in sorted(extras) for line in optional[name]]
    return [line for line in asked if not line.startswith("trueup[")]


USERS = PROJECT["dependencies"] + requirements(PROJECT["optional-dependencies"].keys() - TOOLS)


def name_of(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0]


@pytest.mark.parametrize("requirement", USERS)
def test_a_user_s_dependency_has_a_least_version_and_no_upper_bound(requirement):
    assert re.search(r">=\d", requirement), "say the least version that the tests passed with"
    assert "<" not in requirement, "CONTRIBUTING.md, Dependencies: no upper bounds but for a known break"
    assert "==" not in requirement


def test_the_notices_name_every_dependency_of_users():
    page = (ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w-]+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE))
    rows.pop("package", None)
    assert rows.keys() == {name_of(line) for line in USERS}
    assert all(licence.strip() for licence in rows.values())


def test_the_citation_is_of_this_version_and_has_the_papers():
    yaml = pytest.importorskip("yaml")  # mkdocs has it
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == trueup.__version__
    assert citation["license"] == PROJECT["license"]
    authors = {(paper["authors"][0]["family-names"], paper["year"]) for paper in citation["references"]}
    assert {name for name, _ in authors} == {"Su", "Urkullu", "Nguyen", "Dolatshah", "Lam", "Calderon"}
    folders = {path.name for path in (ROOT / "experiments").iterdir() if re.search(r"\d{4}$", path.name)}
    assert {year for _, year in authors} == {int(name[-4:]) for name in folders}


def test_the_changelog_names_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## \[{re.escape(trueup.__version__)}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)
    assert dated or re.search(rf"^To be released as {re.escape(trueup.__version__)}\b", text, re.MULTILINE)
