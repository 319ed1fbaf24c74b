"""`trueup rates`: from the rates that labels show to the rates that are true; numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from trueup._base.wording import interval, level_words, number
from trueup.cli._app import add_to
from trueup.cli._console import fail_on, json_head, print_json, print_table, say
from trueup.cli._options import AsJson, Level, Seed, option
from trueup.exceptions import InvalidParameter

app = typer.Typer(
    help="True error from apparent error, its bounds, break-even points, and what a label is worth; only rates are "
    "needed, no votes. A rate is written 0.12, 12% or as a count, 120/1000.",
    no_args_is_help=True,
)

Apparent = Annotated[
    str, typer.Option(metavar="RATE", help="How often label and prediction differ; a count, 120/1000, gives -n too.")
]
Mislabeling = Annotated[
    str, typer.Option(metavar="RATE", help="How often labels are wrong; a count, 5/100, gives --n-checked too.")
]
TrueRate = Annotated[str, option("--error", "The true error rate, about.", metavar="RATE", show_default=True)]
Classes = Annotated[int, option("--classes", "Number of classes.", metavar="C", show_default=True)]
Items = Annotated[
    int | None, typer.Option("-n", "--n-items", metavar="N", show_default=False, help="Items that were counted.")
]
Checked = Annotated[
    int | None,
    typer.Option(
        "--n-checked",
        metavar="M",
        show_default=False,
        help="Labels that were checked to know how often they are wrong; without it that is taken as known.",
    ),
]
Combine = Annotated[
    str, option("--combine", "How the labels of an item become one: majority, or optimistic (any right).")
]


@add_to(app, "true-error")
def true_error(
    *,
    apparent: Apparent,
    mislabeling: Mislabeling,
    n: Items = None,
    n_checked: Checked = None,
    classes: Classes = 2,
    level: Level = 0.95,
    method: Annotated[str, option("--method", "Of the interval: score, bootstrap, fieller, delta.")] = ("score"),
    fail_above: Annotated[
        float | None,
        typer.Option(
            "--fail-above",
            metavar="RATE",
            show_default=False,
            help="Exit with 1 if the true error is surely above, i.e. the whole interval is.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The true error rate, if labels and classifier err independently (Rogan-Gladen)."""
    from trueup import rates

    (a, counted), (eps, looked_at) = (
        parse_rate(apparent, option="--apparent"),
        parse_rate(mislabeling, option="--mislabeling"),
    )
    n, n_checked = _one(n, counted, "-n"), _one(n_checked, looked_at, "--n-checked")
    if fail_above is not None and n is None:
        raise InvalidParameter("--fail-above needs an interval, got no number of items; give -n")
    found = rates.true_error(apparent=a, mislabeling=eps, n=n, n_checked=n_checked, n_classes=classes)
    low, high = (float(end) for end in found.interval(level, method=method))  # type: ignore[arg-type]
    least, most = rates.error_bounds(apparent=a, mislabeling=eps, n_classes=classes, dependence="any")
    findings = []
    if fail_above is not None and low > fail_above:
        findings.append(f"the true error is surely above {fail_above:g}: it is between {low:.4f} and {high:.4f}")
    if as_json:
        _print_json(
            {
                "true_error": float(found),
                "raw": found.raw,
                "low": low,
                "high": high,
                "level": level,
                "method": method,
                "truncated": found.truncated,
                "prob_negative": found.prob_negative,
                "bounds": [least, most],
                "apparent": a,
                "mislabeling": eps,
                "n": n,
                "n_checked": n_checked,
                "notes": list(found.notes),
            },
            findings=findings,
        )
    else:
        _table([("true error", float(found), (low, high))], level)
        say(
            f"That takes labels and classifier to err independently; without it these rates allow {float(least):.4f} "
            f"to {float(most):.4f}."
        )
        if n is None:
            say("There is no interval without the number of items: give -n, or a count such as --apparent 120/1000.")
        _notes(found.notes)
    fail_on(findings)


@add_to(app, "apparent-error")
def apparent_error(*, error: TrueRate, mislabeling: Mislabeling, classes: Classes = 2, as_json: AsJson = False) -> None:
    """How often labels and a classifier of a known error will differ, if both err independently."""
    from trueup import rates

    e, eps = parse_rate(error, option="--error")[0], parse_rate(mislabeling, option="--mislabeling")[0]
    shown = float(rates.apparent_error(error=e, mislabeling=eps, n_classes=classes))
    _answer({"apparent_error": shown, "error": e, "mislabeling": eps}, "apparent error", shown, as_json)


@add_to(app)
def bounds(
    *,
    apparent: Apparent,
    mislabeling: Mislabeling,
    classes: Classes = 2,
    dependence: Annotated[
        str, option("--dependence", "non-negative: errors come together rather than not; or any.")
    ] = "non-negative",
    as_json: AsJson = False,
) -> None:
    """The least and the largest true error that the rates allow, if errors may come together."""
    from trueup import rates

    a, eps = parse_rate(apparent, option="--apparent")[0], parse_rate(mislabeling, option="--mislabeling")[0]
    low, high = rates.error_bounds(apparent=a, mislabeling=eps, n_classes=classes, dependence=dependence)  # type: ignore[arg-type]
    if as_json:
        _print_json({"low": low, "high": high, "dependence": dependence, "apparent": a, "mislabeling": eps})
        return
    print_table(("quantity", "bounds"), [("true error", interval(float(low), float(high), 4))])
    say("These are bounds of the rates themselves; they carry no sampling error.")


@add_to(app, "break-even")
def break_even(
    *,
    labeler: Annotated[
        str, option("--labeler", "The labelers' precision and recall.", metavar="RATE", show_default=True)
    ],
    prevalence: Annotated[
        str, option("--prevalence", "The share of positive items.", metavar="RATE", show_default=True)
    ],
    apparent: Annotated[
        str | None,
        option("--apparent", "Precision and recall against labels.", metavar="RATE"),
    ] = None,
    true: Annotated[
        str | None,
        option("--true", "The true ones, to ask what labels show.", metavar="RATE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Precision where it equals recall: the true one from what labels show, or the other way round."""
    from trueup import rates

    if (apparent is None) == (true is None):
        raise InvalidParameter("one of --apparent and --true is needed, got both or none; give the one you know")
    own, share = parse_rate(labeler, option="--labeler")[0], parse_rate(prevalence, option="--prevalence")[0]
    known: dict[str, Any] = {"labeler": own, "prevalence": share}
    if apparent is not None:
        a = parse_rate(apparent, option="--apparent")[0]
        r = float(rates.true_break_even(apparent=a, **known))
        _answer({"true_break_even": r, "apparent": a, **known}, "true precision and recall", r, as_json)
        if not 0 <= r <= 1 and not as_json:
            say("! It is outside 0 to 1: the rates contradict each other, or were counted on few items.")
        return
    r = parse_rate(str(true), option="--true")[0]
    a = float(rates.apparent_break_even(break_even=r, **known))
    _answer({"apparent_break_even": a, "true": r, **known}, "apparent precision and recall", a, as_json)


@add_to(app)
def confusion(
    *,
    joint: Annotated[
        str,
        typer.Option(
            "--joint", metavar="MATRIX", help="Counts of label (rows) and prediction (columns): '520,60;80,340'."
        ),
    ],
    labeler: Annotated[
        str,
        option("--labeler", "Checked labels: truth in rows, label in columns.", metavar="MATRIX", show_default=True),
    ],
    n: Items = None,
    n_checked: Checked = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Also this metric; may be given several times.")
    ] = None,
    level: Level = 0.95,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """A classifier's confusion matrix behind labels that confuse classes in their own way."""
    from trueup import rates

    found = rates.recover_confusion(
        joint=parse_matrix(joint, option="--joint"),
        labeler=parse_matrix(labeler, option="--labeler"),
        n=n,
        n_checked=n_checked,
    )
    ends = tuple(float(end) for end in found.error_interval(level))
    rows: list[tuple[str, float | None, tuple[float, float]]] = [("error", float(found.error), (ends[0], ends[1]))]
    for name in metric or []:
        estimate = found.estimate(name, random_state=seed)
        rows.append((name, estimate.mean, estimate.interval(level)))
    if as_json:
        metrics = {name: {"mean": mean, "low": low, "high": high} for name, mean, (low, high) in rows}
        _print_json(
            {
                "confusion": found.confusion,
                "prior": found.prior,
                "metrics": metrics,
                "level": level,
                "truncated": found.truncated,
            },
            seed=seed,
        )
        return
    matrix = found.confusion
    print_table(
        ("truth", *(f"predicted {k}" for k in range(len(matrix)))),
        [(str(k), *(number(float(cell)) for cell in row)) for k, row in enumerate(matrix)],
        title="Of the items of each class, how they are predicted",
    )
    _table(rows, level)
    if found.truncated:
        say("! Cells were negative before truncation: by chance, or because errors are not independent.")


@add_to(app)
def worth(*, error: TrueRate, mislabeling: Mislabeling, classes: Classes = 2, as_json: AsJson = False) -> None:
    """How many noisy labels tell as much about the error rate as a perfect one."""
    from trueup import rates

    e, eps = parse_rate(error, option="--error")[0], parse_rate(mislabeling, option="--mislabeling")[0]
    labels = float(rates.noisy_labels_per_perfect(error=e, mislabeling=eps, n_classes=classes))
    shown = {"noisy_labels_per_perfect": labels, "error": e, "mislabeling": eps}
    _answer(shown, "noisy labels for a perfect one", labels, as_json)


@add_to(app)
def policy(
    *,
    error: TrueRate,
    mislabeling: Mislabeling,
    labelers: Annotated[int, option("--labelers", "Labelers there are.", metavar="K", show_default=True)],
    items: Annotated[
        int, option("--items", "Items that each of them is paid for.", metavar="N", show_default=True)
    ] = 1,
    combine: Combine = "majority",
    as_json: AsJson = False,
) -> None:
    """Should labelers look at the same items, or each at others?"""
    from trueup import rates

    e, eps = parse_rate(error, option="--error")[0], parse_rate(mislabeling, option="--mislabeling")[0]
    given: dict[str, Any] = {"mislabeling": eps, "n_labelers": labelers, "combine": combine}
    found = rates.labeling_policy(error=e, n_items=items, **given)
    boundary = float(rates.policy_boundary(**given)) if labelers > 1 else None
    if as_json:
        _print_json(
            {
                "best": found.best,
                "different_std": found.different_std,
                "same_std": found.same_std,
                "combined_mislabeling": found.combined_mislabeling,
                "boundary": boundary,
                "error": e,
                "n_items": items,
                **given,
            }
        )
        return
    print_table(
        ("labelers look at", "standard error"),
        [
            ("different items", number(float(found.different_std), 4)),
            ("the same items", number(float(found.same_std), 4)),
        ],
    )
    say(f"Better: {found.best} items.")
    if boundary is None:
        return
    if boundary > 0:
        say(f"The same items are better only for a true error below {number(boundary, 4)}.")
    else:
        say("The same items are better for no true error.")


def parse_rate(text: str, *, option: str) -> tuple[float, int | None]:
    """A rate such as "0.12", or a count such as "120/1000" with its number.

    Examples
    --------
    >>> parse_rate("0.12", option="--apparent"), parse_rate("120/1000", option="--apparent")
    ((0.12, None), (0.12, 1000))
    """
    count, slash, number = text.partition("/")
    try:
        if not slash:
            return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1), None
        part, whole = int(count), int(number)
    except ValueError:
        raise InvalidParameter(
            f"{option} must be a rate such as 0.12, 12% or 120/1000, got {text!r}; write one of them"
        ) from None
    if not 0 <= part <= whole or whole == 0:
        raise InvalidParameter(f"{option} must be a part of a whole, got {text!r}; write e.g. 120/1000")
    return part / whole, whole


def parse_matrix(text: str, *, option: str) -> list[list[float]]:
    """A matrix such as "520,60;80,340", rows apart by semicolons.

    Examples
    --------
    >>> parse_matrix("520,60; 80,340", option="--joint")
    [[520.0, 60.0], [80.0, 340.0]]
    """
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


def _one(given: int | None, counted: int | None, option: str) -> int | None:
    """The number of items from its option or from a count; they must not differ."""
    if given is not None and counted is not None and given != counted:
        raise InvalidParameter(f"{option} must be the number in the count, {counted}, got {given}; give one of them")
    return counted if given is None else given


def _table(rows: Sequence[tuple[str, float | None, tuple[float, float]]], level: float) -> None:
    print_table(
        ("quantity", "value", f"{level_words(level)} interval"),
        [(name, number(value, 4), interval(*ends, 4)) for name, value, ends in rows],
    )


def _print_json(data: dict[str, Any], *, seed: int | None = None, findings: Sequence[str] = ()) -> None:
    """With the head and the tail that the JSON of every command has."""
    print_json({**json_head(seed=seed, files={}), **data, "findings": list(findings)})


def _answer(data: dict[str, Any], name: str, value: float, as_json: bool) -> None:
    """One number."""
    if as_json:
        _print_json(data)
    else:
        print_table(("quantity", "value"), [(name, number(value, 4))])


def _notes(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        say(f"! {sentence}")
