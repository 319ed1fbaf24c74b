"""`trueup rates`: from the rates that labels show to the rates that are true; numbers in, numbers out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from trueup._base.wording import number
from trueup.cli import _options as options
from trueup.cli._command import Answer, add_to, call_library
from trueup.cli._console import ends_of, interval_head, print_records, print_table, say
from trueup.cli._options import Option, opt
from trueup.exceptions import InvalidParameter

rates = typer.Typer(
    help="True error from apparent error, its bounds, break-even points, and what a label is worth; only rates are "
    "needed, no votes. A rate is written 0.12, 12% or as a count, 120/1000.",
    no_args_is_help=True,
)

Apparent = Annotated[str, Option("How often label and prediction differ; a count, 120/1000, gives -n too.", "RATE")]
Mislabeling = Annotated[str, Option("How often labels are wrong; a count, 5/100, gives --n-checked too.", "RATE")]
TrueRate = Annotated[str, Option("The true error rate, about.", "RATE")]
Classes = Annotated[int, Option("Number of classes.", "C", show=True)]
Items = Annotated[int | None, Option("Items that were counted.", "N", ("-n", "--n-items"))]
Checked = Annotated[
    int | None,
    Option("Labels that were checked to know how often they are wrong; without it that is taken as known.", "M"),
]


@add_to(rates, "true-error")
def true_error(
    *,
    apparent: Apparent,
    mislabeling: Mislabeling,
    n: Items = None,
    n_checked: Checked = None,
    classes: Classes = 2,
    level: options.Level = 0.95,
    method: str = opt("score", "Of the interval: score, bootstrap, fieller, delta."),
    fail_above: float | None = opt(
        None, "Exit with 1 if the true error is surely above, i.e. the whole interval is.", "RATE"
    ),
) -> Answer:
    """The true error rate, if labels and classifier err independently (Rogan-Gladen)."""
    from trueup import rates

    rate, counted = parse_rate(apparent, option="--apparent")
    noise, checked = parse_rate(mislabeling, option="--mislabeling")
    for option, given, count in (("-n", n, counted), ("--n-checked", n_checked, checked)):
        if given is not None and count is not None and given != count:
            raise InvalidParameter(f"{option} must be the number in the count, {count}, got {given}; give one of them")
    n, n_checked = n if n is not None else counted, n_checked if n_checked is not None else checked
    if fail_above is not None and n is None:
        raise InvalidParameter("--fail-above needs an interval, got no number of items; give -n")
    numbers: dict[str, Any] = {"apparent": rate, "mislabeling": noise, "n": n, "n_checked": n_checked}
    found = rates.true_error(**numbers, n_classes=classes)
    low, high = (float(end) for end in found.interval(level, method=method))  # type: ignore[arg-type]
    bounds = rates.error_bounds(apparent=rate, mislabeling=noise, n_classes=classes, dependence="any")
    findings = []
    if fail_above is not None and low > fail_above:
        findings.append(f"the true error is surely above {fail_above:g}: it is between {low:.4f} and {high:.4f}")
    body = {"true_error": float(found), "low": low, "high": high, "level": level, "method": method, **numbers}
    body |= {name: getattr(found, name) for name in ("raw", "truncated", "prob_negative", "notes")}

    def show(_: Any) -> None:
        _table({"true error": {"mean": float(found), "low": low, "high": high}}, level)
        say(
            f"That takes labels and classifier to err independently; without it these rates allow "
            f"{float(bounds[0]):.4f} to {float(bounds[1]):.4f}."
        )
        if n is None:
            say("There is no interval without the number of items: give -n, or a count such as --apparent 120/1000.")
        for sentence in found.notes:
            say(f"! {sentence}")

    return Answer({**body, "bounds": list(bounds)}, show, findings=findings)


@add_to(rates, "apparent-error")
def apparent_error(*, error: TrueRate, mislabeling: Mislabeling, classes: Classes = 2) -> Answer:
    """How often labels and a classifier of a known error will differ, if both err independently."""
    from trueup import rates

    return _one_number(rates.apparent_error, _rates(error=error, mislabeling=mislabeling))


@add_to(rates)
def bounds(
    *,
    apparent: Apparent,
    mislabeling: Mislabeling,
    classes: Classes = 2,
    dependence: str = opt("non-negative", "non-negative: errors come together rather than not; or any."),
) -> Answer:
    """The least and the largest true error that the rates allow, if errors may come together."""
    from trueup import rates

    numbers = _rates(apparent=apparent, mislabeling=mislabeling)
    low, high = call_library(rates.error_bounds, **numbers)

    def show(_: Any) -> None:
        print_table(("quantity", "bounds"), [("true error", (float(low), float(high)))], places=4)
        say("These are bounds of the rates themselves; they carry no sampling error.")

    return Answer({"low": low, "high": high, "dependence": dependence, **numbers}, show)


@add_to(rates, "break-even")
def break_even(
    *,
    labeler: str = opt(..., "The labelers' precision and recall.", "RATE"),
    prevalence: str = opt(..., "The share of positive items.", "RATE"),
    apparent: str | None = opt(None, "Precision and recall against labels.", "RATE"),
    true: str | None = opt(None, "The true ones, to ask what labels show.", "RATE"),
) -> Answer:
    """Precision where it equals recall: the true one from what labels show, or the other way round."""
    from trueup import rates

    if (apparent is None) == (true is None):
        raise InvalidParameter("one of --apparent and --true is needed, got both or none; give the one you know")
    numbers = _rates(labeler=labeler, prevalence=prevalence)
    if true is not None:
        asked = _rates(true=true)
        return _one_number(rates.apparent_break_even, asked | numbers, break_even=asked["true"])
    return _one_number(rates.true_break_even, _rates(apparent=str(apparent)) | numbers)


@add_to(rates)
def confusion(
    *,
    joint: str = opt(..., "Counts of label (rows) and prediction (columns): '520,60;80,340'.", "MATRIX"),
    labeler: str = opt(..., "Checked labels: truth in rows, label in columns.", "MATRIX"),
    n: Items = None,
    n_checked: Checked = None,
    metric: list[str] = opt([], "Also this metric; may be given several times.", None, "-m"),
    level: options.Level = 0.95,
    seed: options.Seed = 0,
) -> Answer:
    """A classifier's confusion matrix behind labels that confuse classes in their own way."""
    from trueup import rates

    matrices = {"joint": parse_matrix(joint, option="--joint"), "labeler": parse_matrix(labeler, option="--labeler")}
    found = rates.recover_confusion(**matrices, n=n, n_checked=n_checked)
    metrics = {
        "error": dict(zip(("mean", "low", "high"), (float(found.error), *found.error_interval(level)), strict=True))
    }
    metrics |= {name: ends_of(found.estimate(name, random_state=seed), level) for name in metric}
    about = {"confusion": found.confusion, "prior": found.prior, "metrics": metrics, "level": level}

    def show(_: Any) -> None:
        heads = ("truth", *(f"predicted {k}" for k in range(len(found.confusion))))
        cells = [(str(k), *map(float, row)) for k, row in enumerate(found.confusion)]
        print_table(heads, cells, title="Of the items of each class, how they are predicted")
        _table(metrics, level)
        if found.truncated:
            say("! Cells were negative before truncation: by chance, or because errors are not independent.")

    return Answer({**about, "truncated": found.truncated}, show)


@add_to(rates)
def worth(*, error: TrueRate, mislabeling: Mislabeling, classes: Classes = 2) -> Answer:
    """How many noisy labels say as much about the error rate as a perfect one."""
    from trueup import rates

    return _one_number(rates.noisy_labels_per_perfect, _rates(error=error, mislabeling=mislabeling))


@add_to(rates)
def policy(
    *,
    error: TrueRate,
    mislabeling: Mislabeling,
    labelers: int = opt(..., "Labelers there are.", "K"),
    items: int = opt(1, "Items that each of them is paid for.", "N", show=True),
    combine: str = opt("majority", "How the labels of an item become one: majority, or optimistic (any right)."),
) -> Answer:
    """Should labelers look at the same items, or each at others?"""
    from trueup import rates

    numbers = _rates(error=error, mislabeling=mislabeling)
    given: dict[str, Any] = {"mislabeling": numbers["mislabeling"], "n_labelers": labelers, "combine": combine}
    found = rates.labeling_policy(error=numbers["error"], n_items=items, **given)
    boundary = float(rates.policy_boundary(**given)) if labelers > 1 else None
    names = ("best", "different_std", "same_std", "combined_mislabeling")
    about = {**{name: getattr(found, name) for name in names}, "boundary": boundary, "error": numbers["error"]}

    def show(_: Any) -> None:
        rows = [("different items", float(found.different_std)), ("the same items", float(found.same_std))]
        print_table(("labelers look at", "standard error"), rows, places=4)
        say(f"Better: {found.best} items.")
        if boundary is not None:
            where = f"only for a true error below {number(boundary, 4)}" if boundary > 0 else "for no true error"
            say(f"The same items are better {where}.")

    return Answer({**about, "n_items": items, **given}, show)


def parse_rate(text: str, *, option: str) -> tuple[float, int | None]:
    """A rate such as "0.12", or a count such as "120/1000" with its number."""
    count, slash, whole = text.partition("/")
    try:
        if not slash:
            return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1), None
        part, n = int(count), int(whole)
    except ValueError:
        raise InvalidParameter(f"{option} must be a rate, got {text!r}; write e.g. 0.12, 12% or 120/1000") from None
    if not 0 <= part <= n or n == 0:
        raise InvalidParameter(f"{option} must be a part of a whole, got {text!r}; write e.g. 120/1000")
    return part / n, n


def parse_matrix(text: str, *, option: str) -> list[list[float]]:
    """A matrix such as "520,60;80,340", rows apart by semicolons."""
    try:
        rows = [[float(cell) for cell in row.replace(",", " ").split()] for row in text.split(";")]
    except ValueError:
        rows = []
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidParameter(
            f"{option} must be a matrix of numbers such as '520,60;80,340', got {text!r:.60}; write rows of one "
            "length with ';' between them"
        )
    return rows


def _rates(**texts: str) -> dict[str, float]:
    """The rates that were typed, by option."""
    return {name: parse_rate(text, option=f"--{name}")[0] for name, text in texts.items()}


def _table(numbers: Mapping[str, Mapping[str, Any]], level: float) -> None:
    columns = {"quantity": "name", "value": "mean", interval_head(level): "interval"}
    print_records(columns, [{"name": name, **ends} for name, ends in numbers.items()], places=4)


def _one_number(function: Callable[..., Any], numbers: Mapping[str, float], **more: float) -> Answer:
    """What a function of the library makes of rates that are known."""
    taken = inspect.signature(function).parameters
    value = float(call_library(function, **{name: rate for name, rate in numbers.items() if name in taken}, **more))
    name = function.__name__

    def show(_: Any) -> None:
        print_table(("quantity", "value"), [(name.replace("_", " "), value)], places=4)
        if name.endswith("break_even") and not 0 <= value <= 1:
            say("! It is outside 0 to 1: the rates contradict each other, or were of few items.")

    return Answer({name: value, **numbers}, show)
