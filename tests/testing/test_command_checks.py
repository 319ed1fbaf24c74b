"""Every command keeps the contract of trueup.testing.commands, and the checks find what breaks it."""

import pytest
import typer

from trueup.cli import app
from trueup.testing import commands as command_checks
from trueup.testing.commands import COMMAND_CHECKS, check_help


def commands() -> list[str]:
    """All commands, those of groups as two words."""
    program = typer.main.get_command(app)
    names = []
    for name in program.list_commands(None):
        command = program.get_command(None, name)
        inner = command.list_commands(None) if hasattr(command, "list_commands") else []
        names += [f"{name} {one}" for one in inner] if inner else [name]
    return names


@pytest.fixture(scope="module")
def ran_together():
    """All commands run once, in one process."""
    command_checks._run_together(commands())


@pytest.mark.usefixtures("ran_together")
@pytest.mark.parametrize("check", COMMAND_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("command", commands())
def test_contract(command, check):
    check(command)


def test_a_command_that_is_none_is_told():
    with pytest.raises(AssertionError, match="no-such-command"):
        check_help("no-such-command")
