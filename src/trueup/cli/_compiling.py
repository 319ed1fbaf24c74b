"""What a first command waits for, said."""

from __future__ import annotations

from trueup.cli._console import note


def compile_first() -> None:
    """Compile the chains of plain answers where this was never done, and say that it takes a while."""
    from trueup.noise import compiling

    if not compiling.are_chains_compiled():
        note("compiling the models, once after installing; this takes about half a minute …")
        compiling.compile_chains()
