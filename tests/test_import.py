"""Importing trueup is silent and quick, and what is optional stays optional."""

import subprocess
import sys

import pytest

HEAVY = {"scipy.stats", "scipy.optimize", "sklearn", "numba", "pandas", "polars", "pyarrow", "matplotlib", "torch"} | {
    "jinja2",
    "typer",
    "rich",
}


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter in which every warning is an error."""
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "use",
    [
        "",
        # Classifiers that train on votes are scikit-learn's kind; nothing else needs it to be imported.
        "[getattr(trueup, name) for name in trueup.__all__ if name not in ('training', 'scorer')]\n"
        "trueup.noise.Majority().fit(trueup.Labels.from_matrix([[0, 1], [1, 1]]))",
    ],
    ids=["import", "use"],
)
def test_import_is_silent_and_light(use):
    done = run(f"import sys, trueup\n{use}\nsys.exit(','.join({HEAVY!r} & sys.modules.keys()) or 0)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_core_works_without_any_extra():
    # A module that is None in sys.modules cannot be imported, nor found.
    done = run(
        """
import sys
sys.modules.update(dict.fromkeys(
    ["numba", "llvmlite", "pandas", "polars", "pyarrow", "matplotlib", "contourpy", "pycocotools"]
))
import trueup as tu
data = tu.simulate.baseline(n_items=300, random_state=0)
tu.noise.DawidSkene().fit(data.labels).posterior(data.labels)
for needs in (lambda: data.labels.to_frame(), lambda: tu.posteriors.beta_estimate(3, 2).plot()):
    try:
        needs()
    except tu.exceptions.MissingExtra as error:
        assert "pip install 'trueup[" in str(error), error
    else:
        raise AssertionError("a missing extra must be said")
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
