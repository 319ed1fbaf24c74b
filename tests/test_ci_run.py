"""The run of continuous integration tests a clone of the commit with nothing beside it, and leaves nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"
MAKEFILE = """
test tests test-workshop test-integrations:
	@echo "$@ of $$(cat version) with [$(MARKERS)] in $$(pwd)"
	@echo "data [$$TRUEUP_DATA] adapters [$$TRUEUP_ADAPTERS] required [$$TRUEUP_REQUIRE] engine [$$TRUEUP_ENGINE]"
	@echo "beside: $$(ls ..)"
	@grep -q whole version
"""

pytestmark = pytest.mark.skipif(
    not SCRIPT.exists() or not all(map(shutil.which, ("bash", "git", "make"))),
    reason="needs the checkout and its tools",
)


def git(checkout: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=checkout, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """A committed project with the script, and in its folder a change that is not committed."""
    folder = tmp_path / "checkout"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / ".ci" / "run")
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (folder / "version").write_text("whole\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "All of it")
    (folder / "version").write_text("half\n", encoding="utf-8")
    return folder


def run(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run the script with variables set that a stranger does not have; temporary folders lie in ``tmp``."""
    place = checkout.parent / "tmp"
    place.mkdir(exist_ok=True)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TRUEUP_", "GIT_", "MAKE"))}
    environment = {**plain, "TMPDIR": str(place), "TRUEUP_DATA": "somewhere", "TRUEUP_ENGINE": "scipy"}
    command = ["bash", ".ci/run"]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_the_commit_is_tested_in_a_folder_of_its_own(checkout):
    ran = run(checkout)
    assert ran.returncode == 0, ran.stderr
    first, variables, beside, then, *_ = ran.stdout.splitlines()
    assert first.startswith("test of whole with []")
    assert then.startswith("test-workshop of whole with []")
    assert str(checkout.parent / "tmp") in first
    assert variables == "data [] adapters [] required [] engine []"
    assert beside == "beside: trueup"
    assert not list((checkout.parent / "tmp").iterdir())


def test_what_a_machine_may_lack_is_required_where_the_data_are(checkout):
    (checkout.parent / "shared").mkdir()
    ran = run(checkout)
    assert ran.returncode == 0, ran.stderr
    first, without, _, second, variables, _, third, *_ = ran.stdout.splitlines()
    assert first.startswith("test of whole with [not (slow or browser or postgres or workshop)]")
    assert without == "data [] adapters [] required [] engine []"
    assert second.startswith("tests of whole with [(data or adapters or browser or postgres or workshop) and not slow]")
    assert third.startswith("test-integrations of whole")
    shared = checkout.parent / "shared"
    assert variables == f"data [{shared}/data] adapters [{shared}/adapters] required [browser,data,postgres] engine []"


def test_a_failure_fails_the_run_and_leaves_nothing(checkout):
    git(checkout, "commit", "--quiet", "--all", "--message", "Half of it")
    assert run(checkout).returncode != 0
    assert not list((checkout.parent / "tmp").iterdir())


def test_compiled_code_is_kept_whatever_the_shell_says(tmp_path):
    # Else each of the hundreds of processes of the tests compiles all that it imports.
    rule = 'shown:\n\t@echo "[$$PYTHONDONTWRITEBYTECODE]"\n'
    probe = tmp_path / "probe.mk"
    probe.write_text(f"include {SCRIPT.parents[1] / 'Makefile'}\n{rule}", encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", "-f", str(probe), "shown"]
    ran = subprocess.run(
        command, env={**plain, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
