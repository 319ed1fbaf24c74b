"""`trueup plan`: how to spend money on labels, what a precision costs, and which items or contests to vet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.wording import level_words, number
from trueup.cli import _options as options
from trueup.cli._app import GroupWithDefault, add_to
from trueup.cli._console import fail_on, json_head, note, print_json, print_table, say, to_cli_terms
from trueup.cli._files import Plot, about_files, check_picture, read_systems, read_votes, save_plot
from trueup.cli.draw import draw, draw_pairs
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions

if TYPE_CHECKING:
    from trueup.labelers.planning import Design, Plan


_SHOWN = 5  # other budgets in the table, about
_LEAST_CORRELATION = 0.01  # below it votes are as good as independent
_START, _MOST_STEP, _TRIES = 100.0, 1000.0, 12  # the budget tried first, the largest step from it, and how many
_EXACT = 1.01  # the least budget is found to within a hundredth

OptionalVotesFile = Annotated[
    str | None,
    typer.Argument(metavar="VOTES", show_default=False, help="Votes to learn how labelers err from; - is stdin."),
    options.InputFile(),
]


app = typer.Typer(
    cls=GroupWithDefault,
    help="How to spend money on labels, and which items to vet. Without a command it is 'spend'.",
    add_completion=False,
)


@add_to(app)
def spend(
    how: options.VoteOptions,
    how_predicted: options.PredictionOptions,
    votes: OptionalVotesFile = None,
    predictions: options.OptionalPredictionsFile = None,
    budget: Annotated[float | None, options.option("--budget", "What may be spent.", metavar="MONEY")] = None,
    half_width: Annotated[
        float | None,
        options.option("--half-width", "In place of a budget: the precision to be paid for.", metavar="WIDTH"),
    ] = None,
    vote_price: Annotated[float | None, options.option("--vote-price", "Of a vote.", metavar="MONEY")] = None,
    expert_price: Annotated[
        float | None, options.option("--expert-price", "Of an item vetted by an expert.", metavar="MONEY")
    ] = None,
    item_price: Annotated[
        float,
        options.option(
            "--item-price", "Of an item itself, beyond votes and vettings.", metavar="MONEY", show_default=True
        ),
    ] = 0.0,
    labeler_accuracy: Annotated[
        float | None,
        options.option("--labeler-accuracy", "Rough accuracy of a labeler; learned from VOTES.", metavar="RATE"),
    ] = None,
    error: Annotated[
        float | None,
        options.option("--error", "The model's rough error; learned from VOTES and PREDICTIONS.", metavar="RATE"),
    ] = None,
    correlation: Annotated[
        float | None,
        options.option(
            "--correlation", "Of the errors of two votes on an item; learned from VOTES, otherwise 0.", metavar="RHO"
        ),
    ] = None,
    classes: Annotated[
        int | None, options.option("--classes", "Number of classes; that of VOTES, otherwise 2.", metavar="C")
    ] = None,
    noise_known: Annotated[
        bool, options.option("--noise-known", "The labelers' error is known from elsewhere.")
    ] = False,
    max_items: Annotated[int | None, options.option("--max-items", "The items there are.", metavar="N")] = None,
    max_votes: Annotated[
        int, options.option("--max-votes", "The most votes on an item.", metavar="K", show_default=True)
    ] = 15,
    design: Annotated[
        list[str] | None,
        options.option(
            "--design", "Choose from this kind: votes, vetted, both. May be given several times.", metavar="KIND"
        ),
    ] = None,
    level: options.Level = 0.95,
    fail_above: Annotated[
        float | None,
        options.option("--fail-above", "Exit with 1 if the half-width that is bought is wider.", metavar="WIDTH"),
    ] = None,
    plot: Plot = None,
    as_json: options.AsJson = False,
) -> None:
    """How many items, votes and vettings give the narrowest interval of a model's accuracy for the money."""
    from trueup.labelers import planning

    if (budget is None) == (half_width is None):
        raise InvalidParameter("one of --budget and --half-width is needed, got both or none; give one")
    if predictions is not None and votes is None:
        raise InvalidParameter("predictions need votes, got none; name the votes first")
    picture = check_picture(plot)
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
    for name, flag in (("labeler_accuracy", "--labeler-accuracy"), ("error", "--error")):
        if name not in known:
            raise InvalidParameter(f"{flag} is needed, got none; give it, or the votes and predictions to learn it")

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

    chosen = buy(float(budget)) if budget is not None else _cheapest(buy, float(half_width or 0.0))
    if picture is not None:
        save_plot(chosen.plot(), picture)
    findings = []
    if fail_above is not None and chosen.half_width > fail_above:
        findings.append(f"the half-width is {chosen.half_width:.4f}, wider than {fail_above:g}")
    if as_json:
        files = about_files(votes=votes, predictions=predictions, gold=how.gold, items=how.items)
        print_json({**json_head(seed=None, files=files), **_record(chosen, known, learned), "findings": findings})
    else:
        _print(chosen, known, learned)
    fail_on(findings)


add_to(app)(draw)
add_to(app)(draw_pairs)


def _learned(
    votes: str, predictions: str | None, how: options.VoteOptions, how_predicted: options.PredictionOptions
) -> dict[str, Any]:
    """What votes and predictions say about labelers and model, by the model that their correlation is held against."""
    from trueup.noise import DawidSkene, effective_labelers

    labels = read_votes(votes, how)
    if (labels.votes_per_item < 2).all():
        raise InvalidLabels(
            f"how labelers err cannot be learned from {votes!r}, got no item with two votes; give --labeler-accuracy "
            "and --error in place of the file"
        )
    model = DawidSkene().fit(labels)
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
        systems = read_systems(predictions, labels, how_predicted, how)
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


def _around(chosen: Plan, half_width: float) -> tuple[float | None, float | None]:
    """The last budget of the frontier that buys too little and the first that buys enough; None where there is none."""
    below = None
    for budget, design in zip(sorted(set(chosen.frontier.budgets)), chosen.frontier.best(), strict=True):
        if design.half_width <= half_width:
            return below, budget
        below = budget
    return below, None


def _print(chosen: Plan, known: dict[str, Any], learned: dict[str, Any]) -> None:
    if learned:
        names = {"labeler_accuracy": "labelers' accuracy", "error": "model's error", "correlation": "correlation"}
        from_votes = ", ".join(f"{label} {known[name]:.3f}" for name, label in names.items() if name in learned)
        say(f"From the votes: {from_votes} (options of these names overrule them).")
    d = chosen.design
    parts = [f"{d.n_items:,} items"]
    parts += [f"{d.votes_per_item} votes on each"] if d.votes_per_item else []
    parts += [f"{d.n_vettings:,} vetted by the expert"] if d.n_vettings else []
    say(
        f"Buy {', '.join(parts)}: accuracy ± {d.half_width:.4f} at {level_words(chosen.level)}, for {d.cost:,.6g} of "
        f"{chosen.budget:,.6g}."
    )
    for sentence in chosen.notes:
        say(f"! {to_cli_terms(sentence)}")
    best = {d.kind: d for d in reversed(chosen.alternatives)}
    _table("The best of each kind at this budget", sorted(best.values(), key=lambda d: d.half_width))
    others = chosen.frontier.best()
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


def _record(chosen: Plan, known: dict[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
    return {
        **_design(chosen.design),
        "budget": chosen.budget,
        "level": chosen.level,
        "notes": chosen.notes,
        "assumed": known,
        "learned": sorted(learned),
        "alternatives": [_design(d) for d in chosen.alternatives],
        "frontier": [_design(d) for d in chosen.frontier.best()],
    }


def _design(d: Design) -> dict[str, Any]:
    names = ("kind", "n_items", "votes_per_item", "n_vettings", "half_width", "cost")
    return {name: getattr(d, name) for name in names}
