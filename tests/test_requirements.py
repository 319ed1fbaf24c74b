"""Tests that need what a machine may lack are skipped with a reason, and fail where TRUEUP_REQUIRE asks for it."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
CASES = """
    import pytest

    @pytest.mark.data
    def test_reads_the_folder(data_folder):
        assert data_folder.is_absolute()

    @pytest.mark.browser
    def test_opens_a_page():
        pytest.skip("nothing starts here")

    @pytest.mark.data
    @pytest.mark.xfail(reason="known", strict=True)
    def test_is_known_to_fail():
        assert False

    def test_skips_for_another_reason():
        pytest.skip("no fork here")
"""


@pytest.fixture
def run_cases(pytester, monkeypatch):
    """Run the cases above under the conftest of this folder and the markers of the project."""
    for variable in ("TRUEUP_DATA", "TRUEUP_ADAPTERS", "TRUEUP_REQUIRE"):
        monkeypatch.delenv(variable, raising=False)
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyprojecttoml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    def run(cases: str = CASES, **environment: str) -> pytest.RunResult:
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        pytester.makepyfile(cases)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", pytester.path)

    return run


def test_without_the_folder_tests_are_skipped_with_a_reason(run_cases):
    ran = run_cases()
    ran.assert_outcomes(skipped=4)
    ran.stdout.fnmatch_lines(["SKIPPED*TRUEUP_DATA is not set; it names the folder that this test reads"])


def test_with_the_folder_tests_run(run_cases, pytester):
    ran = run_cases(TRUEUP_DATA=str(pytester.path))
    ran.assert_outcomes(passed=1, xfailed=1, skipped=2)


def test_what_is_required_must_not_be_skipped(run_cases, pytester):
    ran = run_cases(TRUEUP_REQUIRE="data, browser")
    ran.assert_outcomes(errors=2, failed=1, skipped=1)
    ran.stdout.fnmatch_lines(
        [
            "*TRUEUP_REQUIRE asks for data, but this test was skipped: *TRUEUP_DATA is not set*",
            "*TRUEUP_REQUIRE asks for browser, but this test was skipped: *nothing starts here",
        ]
    )


def test_a_misspelled_requirement_is_an_error(run_cases):
    ran = run_cases(TRUEUP_REQUIRE="datas")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(
        ["*TRUEUP_REQUIRE must name some of adapters, browser, data, integrations, node, postgres, got datas"]
    )


def test_a_test_that_reads_the_folder_must_carry_the_marker(run_cases):
    ran = run_cases("def test_reads_the_folder(data_folder): pass")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*must be marked with data*"])
