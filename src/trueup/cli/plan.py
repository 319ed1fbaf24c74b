"""`trueup plan`: how to spend money on labels, and what a precision costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli._app import fail_on
from trueup.cli._console import in_our_words, level_words, note, number, print_json, print_table, say
from trueup.cli._options import AsJson, Level, OptionalPredictionsFile, PredictionOptions, VoteOptions
from trueup.cli._reading import unbundled
from trueup.cli._tables import Plot
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions

if TYPE_CHECKING:
    from trueup.labelers.planning import Design, Plan

__all__ = ["plan"]

_SHOWN = 5  # other budgets in the table, about
_LEAST_CORRELATION = 0.01  # below it votes are as good as independent
_START, _MOST_STEP, _TRIES = 100.0, 1000.0, 12  # the budget tried first, the largest step from it, and how many
_EXACT = 1.01  # the least budget is found to within a hundredth

OptionalVotesFile = Annotated[
    str | None,
    typer.Argument(metavar="VOTES", show_default=False, help="Votes to learn how labelers err from; - is stdin."),
]


def _option(flag: str, metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(flag, metavar=metavar, show_default=False, help=text, **more)


@unbundled
def plan(
    how: VoteOptions,
    how_predicted: PredictionOptions,
    votes: OptionalVotesFile = None,
    predictions: OptionalPredictionsFile = None,
    budget: Annotated[float | None, _option("--budget", "MONEY", "What may be spent.")] = None,
    half_width: Annotated[
        float | None, _option("--half-width", "WIDTH", "In place of a budget: the precision to be paid for.")
    ] = None,
    vote_price: Annotated[float | None, _option("--vote-price", "MONEY", "Of a vote.")] = None,
    expert_price: Annotated[float | None, _option("--expert-price", "MONEY", "Of an item vetted by an expert.")] = None,
    item_price: Annotated[
        float, typer.Option("--item-price", metavar="MONEY", help="Of an item itself, beyond votes and vettings.")
    ] = 0.0,
    labeler_accuracy: Annotated[
        float | None, _option("--labeler-accuracy", "RATE", "Rough accuracy of a labeler; learned from VOTES.")
    ] = None,
    error: Annotated[
        float | None, _option("--error", "RATE", "The model's rough error; learned from VOTES and PREDICTIONS.")
    ] = None,
    correlation: Annotated[
        float | None,
        _option("--correlation", "RHO", "Of the errors of two votes on an item; learned from VOTES, otherwise 0."),
    ] = None,
    classes: Annotated[int | None, _option("--classes", "C", "Number of classes; that of VOTES, otherwise 2.")] = None,
    noise_known: Annotated[
        bool, typer.Option("--noise-known", help="The labelers' error is known from elsewhere.")
    ] = False,
    max_items: Annotated[int | None, _option("--max-items", "N", "The items there are.")] = None,
    max_votes: Annotated[int, typer.Option("--max-votes", metavar="K", help="The most votes on an item.")] = 15,
    design: Annotated[
        list[str] | None,
        _option("--design", "KIND", "Choose from this kind: votes, vetted, both. May be given several times."),
    ] = None,
    level: Level = 0.95,
    fail_above: Annotated[
        float | None, _option("--fail-above", "WIDTH", "Exit with 1 if the half-width that is bought is wider.")
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """How many items, votes and vettings give the narrowest interval of a model's accuracy for the money."""
    from trueup.cli._reading import about_files
    from trueup.cli._reporting import json_head
    from trueup.cli._tables import check_picture, save_plot
    from trueup.labelers import planning

    if (budget is None) == (half_width is None):
        raise InvalidParameter("one of --budget and --half-width is needed, got both or none; give one")
    if predictions is not None and votes is None:
        raise InvalidParameter("predictions need votes, got none; name the votes first")
    picture = None if plot is None else check_picture(plot)
    learned = {} if votes is None else _learned(votes, predictions, how, how_predicted)
    asked: dict[str, Any] = {
        "labeler_accuracy": labeler_accuracy,
        "error": error,
        "correlation": correlation,
        "n_classes": classes,
    }
    known = {**learned, **{name: value for name, value in asked.items() if value is not None}}
    if known.get("n_classes") != learned.get("n_classes"):
        known.pop("prior", None)  # of the votes' classes, which were not asked about
    for name, option in (("labeler_accuracy", "--labeler-accuracy"), ("error", "--error")):
        if name not in known:
            raise InvalidParameter(f"{option} is needed, got none; give it, or the votes and predictions to learn it")

    def buy(money: float) -> Plan:
        return planning.plan(
            budget=money,
            vote_price=vote_price,
            expert_price=expert_price,
            item_price=item_price,
            noise_known=noise_known,
            max_items=max_items,
            max_votes=max_votes,
            designs=design,  # type: ignore[arg-type]  # checked by the callee, with a sentence
            level=level,
            **known,
        )

    found = buy(float(budget)) if budget is not None else _cheapest(buy, float(half_width or 0.0))
    if picture is not None:
        save_plot(found.plot(), picture)
    findings = []
    if fail_above is not None and found.half_width > fail_above:
        findings.append(f"the half-width is {found.half_width:.4f}, wider than {fail_above:g}")
    if as_json:
        files = about_files(votes=votes, predictions=predictions, gold=how.gold)
        print_json({**json_head(seed=None, files=files), **_record(found, known, learned), "findings": findings})
    else:
        _print(found, known, learned)
    fail_on(findings)


def _learned(votes: str, predictions: str | None, how: VoteOptions, how_predicted: PredictionOptions) -> dict[str, Any]:
    """What votes and predictions say about labelers and model, by the model that lets labelers err together."""
    from trueup.cli._reading import check_one_stdin, read_systems, read_votes
    from trueup.noise import Subtypes, effective_labelers

    check_one_stdin(votes, predictions)
    labels = read_votes(votes, how)
    if (labels.votes_per_item < 2).all():
        raise InvalidLabels(
            f"how labelers err cannot be learned from {votes!r}, got no item with two votes; give --labeler-accuracy "
            "and --error in place of the file"
        )
    model = Subtypes().fit(labels)
    posterior = model.posterior(labels)
    item, _, answer, times = labels.vote_table()
    named = answer < labels.n_classes
    right = posterior[item[named], answer[named]] @ times[named] / max(times[named].sum(), 1)
    rho = effective_labelers(labels, model).correlation
    found: dict[str, Any] = {
        "labeler_accuracy": float(right),
        "correlation": rho if rho >= _LEAST_CORRELATION else 0.0,
        "n_classes": labels.n_classes,
        "prior": [float(share) for share in posterior.mean(axis=0)],
    }
    if predictions is not None:
        systems = read_systems(predictions, labels, how_predicted, item=how.item, file_format=how.file_format)
        codes = systems.align(labels).codes
        if codes is None:
            raise InvalidPredictions("predictions must name classes, got scores alone; add a column 'prediction'")
        right_of = [posterior[there, row[there]] for row in codes if (there := row >= 0).any()]
        errors = [1 - float(one.mean()) for one in right_of]
        found["error"] = min(max(sum(errors) / max(len(errors), 1), 1e-3), 0.999)
        if len(errors) > 1:
            note(f"the mean error of {len(errors)} systems is taken")
    return found


def _cheapest(buy: Callable[[float], Plan], half_width: float) -> Plan:
    """The plan of the least budget that buys a half-width."""
    if not 0 < half_width < 1:
        raise InvalidParameter(f"--half-width must be between 0 and 1, got {half_width:g}; give e.g. 0.02")

    def tried(money: float) -> Plan | None:
        try:
            return buy(money)
        except InvalidParameter:
            return None  # less than the least design costs, or another fault, which the last try shows

    # Each plan knows what a tenth to ten times its budget would buy. Half-widths fall with the root of the budget, so a
    # plan also says where to try next.
    money, low, high, last = _START, None, None, None
    for _ in range(_TRIES):
        now = tried(money)
        if now is None:
            low = money
            if high is not None:
                break
            money *= _MOST_STEP
            continue
        below, enough = _around(now, half_width)
        low, high, last = below or low, enough or high, now
        if low is not None and high is not None:
            break
        step = (now.half_width / half_width) ** 2
        money *= min(max(step, 1 / _MOST_STEP), _MOST_STEP)
    if high is None:
        least = min(d.half_width for d in (last or buy(money)).frontier.designs)
        raise InvalidParameter(
            f"--half-width must be within reach, got {half_width:g} where {least:.4f} is the least; allow more items "
            "or other designs"
        )
    best = buy(high)
    low = high / _MOST_STEP if low is None else low
    while high / low > _EXACT:
        middle = (low * high) ** 0.5
        now = tried(middle)
        if now is not None and now.half_width <= half_width:
            high, best = middle, now
        else:
            low = middle
    return best


def _around(found: Plan, half_width: float) -> tuple[float | None, float | None]:
    """The last budget of the frontier that buys too little and the first that buys enough; None where there is none."""
    below = None
    for budget, design in zip(sorted(set(found.frontier.budgets)), found.frontier.best(), strict=True):
        if design.half_width <= half_width:
            return below, budget
        below = budget
    return below, None


def _print(found: Plan, known: dict[str, Any], learned: dict[str, Any]) -> None:
    if learned:
        names = {"labeler_accuracy": "labelers' accuracy", "error": "model's error", "correlation": "correlation"}
        told = ", ".join(f"{label} {known[name]:.3f}" for name, label in names.items() if name in learned)
        say(f"From the votes: {told} (options of these names overrule them).")
    d = found.design
    parts = [f"{d.n_items:,} items"]
    parts += [f"{d.votes_per_item} votes on each"] if d.votes_per_item else []
    parts += [f"{d.n_vettings:,} vetted by the expert"] if d.n_vettings else []
    say(
        f"Buy {', '.join(parts)}: accuracy ± {d.half_width:.4f} at {level_words(found.level)}, for {d.cost:,.6g} of "
        f"{found.budget:,.6g}."
    )
    for sentence in found.notes:
        say(f"! {in_our_words(sentence)}")
    best = {d.kind: d for d in reversed(found.alternatives)}
    _table("The best of each kind at this budget", sorted(best.values(), key=lambda d: d.half_width))
    others = found.frontier.best()
    _table("What other budgets buy", others[:: max(len(others) // _SHOWN, 1)])


def _table(title: str, designs: Sequence[Design]) -> None:
    print_table(
        ("kind", "items", "votes each", "vetted", "half-width", "cost"),
        [
            (d.kind, f"{d.n_items:,}", d.votes_per_item, f"{d.n_vettings:,}", number(d.half_width, 4), f"{d.cost:,.6g}")
            for d in designs
        ],
        title=title,
    )


def _record(found: Plan, known: dict[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
    return {
        **_design(found.design),
        "budget": found.budget,
        "level": found.level,
        "notes": found.notes,
        "assumed": known,
        "learned": sorted(learned),
        "alternatives": [_design(d) for d in found.alternatives],
        "frontier": [_design(d) for d in found.frontier.best()],
    }


def _design(d: Design) -> dict[str, Any]:
    names = ("kind", "n_items", "votes_per_item", "n_vettings", "half_width", "cost")
    return {name: getattr(d, name) for name in names}
