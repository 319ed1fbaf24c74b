"""The command line: parse, call, print."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from trueup.demo import Demo, run_demo
from trueup.exceptions import TrueupError

__all__ = ["app", "main"]

app = typer.Typer(
    name="trueup",
    help="How good is a classifier really, when the labels are noisy?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trueup {importlib.metadata.version('trueup')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """How good is a classifier really, when the labels are noisy?"""


@app.command()
def demo(seed: Annotated[int, typer.Option(help="Seed of all chance.")] = 0) -> None:
    """Train two classifiers, let a simulated crowd label the test part, and say how good they really are."""
    console = Console()
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True) as bar:
        tasks: dict[str, object] = {}

        def hear(name: str, share: float) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(f"evaluating {name}", total=1.0)
            bar.update(tasks[name], completed=share)  # type: ignore[arg-type]

        result = run_demo(random_state=seed, progress=hear)
    _print_demo(result, console)


def _print_demo(result: Demo, console: Console) -> None:
    labels = result.labels
    console.print(
        f"A crowd of {labels.n_labelers} gave {labels.n_votes:,} votes on {labels.n_items:,} handwritten digits; "
        "nobody is told the truth.\n" + result.effective.sentence
    )
    table = Table(title="Accuracy of two classifiers")
    for heading in ("classifier", "trueup", "95% interval", "majority as truth", "hidden truth"):
        table.add_column(heading, justify="left" if heading == "classifier" else "right")
    for name, evaluation in result.evaluations.items():
        low, high = evaluation["accuracy"].interval(0.95)
        table.add_row(
            name,
            f"{evaluation['accuracy'].mean:.3f}",
            f"{low:.3f} to {high:.3f}",
            f"{result.majority[name]:.3f}",
            f"{result.truth[name]:.3f}",
        )
    console.print(table)
    for sentence in dict.fromkeys(s for e in result.evaluations.values() for s in e.warnings):
        console.print(f"! {sentence}")


def main() -> None:
    """Run the command line; an error on purpose is one sentence and exit code 2."""
    try:
        app()
    except TrueupError as error:
        Console(stderr=True).print(f"error: {error}", style="red")
        raise SystemExit(2) from None
