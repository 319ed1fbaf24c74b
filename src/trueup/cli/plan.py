"""`trueup plan`: how to spend money on labels, what a precision costs, and which items or contests to check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from trueup._base.wording import level_words
from trueup.cli import _options as options
from trueup.cli._command import Answer, add_to
from trueup.cli._console import note, print_records, say
from trueup.cli._files import read_systems, read_votes, save_plot
from trueup.cli.draw import draw, draw_pairs
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions

if TYPE_CHECKING:
    from trueup.labelers.planning import Design, Plan

_SHOWN = 5  # other budgets in the table, about
_LEAST_CORRELATION = 0.01  # below it votes are as good as independent
_START, _MOST_STEP, _TRIES = 100.0, 1000.0, 12  # the budget tried first, the largest step from it, and how many
_EXACT = 1.01  # the least budget is found to within a hundredth


class GroupWithDefault(TyperGroup):
    """A group whose first command is meant where none is named: ``plan votes.csv`` is ``plan spend votes.csv``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the first command unless a command, or the help of all, is asked for."""
        names = self.list_commands(ctx)
        if not args or args[0] not in (*names, *ctx.help_option_names):
            args = [names[0], *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=GroupWithDefault,
    help="How to spend money on labels, and which items to check. Without a command it is 'spend'.",
    add_completion=False,
)


@add_to(app)
def spend(
    how: options.VoteOptions,
    how_predicted: options.PredictionOptions,
    votes: str | None = options.arg(
        None, "VOTES", "Votes to learn how labelers err from; - is stdin.", reads=True, show=False
    ),
    predictions: options.OptionalPredictionsFile = None,
    budget: float | None = options.opt(None, "What may be spent.", "MONEY"),
    half_width: float | None = options.opt(None, "In place of a budget: the precision to be paid for.", "WIDTH"),
    vote_price: float | None = options.opt(None, "Of a vote.", "MONEY"),
    expert_price: float | None = options.opt(None, "Of an item checked by an expert.", "MONEY"),
    item_price: float = options.opt(0.0, "Of an item itself, beyond votes and checks.", "MONEY", show=True),
    labeler_accuracy: float | None = options.opt(None, "Rough accuracy of a labeler; learned from VOTES.", "RATE"),
    error: float | None = options.opt(None, "The model's rough error; learned from VOTES and PREDICTIONS.", "RATE"),
    correlation: float | None = options.opt(
        None, "Of the errors of two votes on an item; learned from VOTES, otherwise 0.", "RHO"
    ),
    classes: int | None = options.opt(None, "Number of classes; that of VOTES, otherwise 2.", "C"),
    noise_known: bool = options.opt(False, "The labelers' error is known from elsewhere."),
    max_items: int | None = options.opt(None, "The items there are.", "N"),
    max_votes: int = options.opt(15, "The most votes on an item.", "K", show=True),
    design: list[str] = options.opt(
        [], "Choose from this kind: votes, vetted, both. May be given several times.", "KIND"
    ),
    level: options.Level = 0.95,
    fail_above: float | None = options.opt(None, "Exit with 1 if the half-width that is bought is wider.", "WIDTH"),
    plot: options.Plot = None,
) -> Answer:
    """How many items, votes and checks give the narrowest interval of a model's accuracy for the money."""
    from trueup.labelers import planning

    if (budget is None) == (half_width is None):
        raise InvalidParameter("one of --budget and --half-width is needed, got both or none; give one")
    if predictions is not None and votes is None:
        raise InvalidParameter("predictions need votes, got none; name the votes first")
    learned = {} if votes is None else _learned(votes, predictions, how, how_predicted)
    asked = {"labeler_accuracy": labeler_accuracy, "error": error, "correlation": correlation, "n_classes": classes}
    assumed = learned | options.given(**asked)
    if assumed.get("n_classes") != learned.get("n_classes"):
        assumed.pop("prior", None)  # of the votes' classes, which were not asked about
    for name in ("labeler_accuracy", "error"):
        if name not in assumed:
            flag = f"--{name.replace('_', '-')}"
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
            designs=design or None,  # type: ignore[arg-type]  # checked by the callee, with a sentence
            level=level,
            **assumed,
        )

    chosen = buy(float(budget)) if budget is not None else _cheapest(buy, float(half_width or 0.0))
    if plot is not None:
        save_plot(chosen.plot(), plot)
    findings = []
    if fail_above is not None and chosen.half_width > fail_above:
        findings.append(f"the half-width is {chosen.half_width:.4f}, wider than {fail_above:g}")
    body = {
        **_about(chosen.design),
        "budget": chosen.budget,
        "level": chosen.level,
        "notes": chosen.notes,
        "assumed": assumed,
        "learned": sorted(learned),
        "alternatives": [_about(design) for design in chosen.alternatives],
        "frontier": [_about(design) for design in chosen.frontier.best()],
    }
    return Answer(body, _show, findings=findings)


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
    item, _, answer, counts = labels.vote_table()
    named = answer < labels.n_classes
    right = posterior[item[named], answer[named]] @ counts[named] / max(counts[named].sum(), 1)
    correlation = effective_labelers(labels, model).correlation
    found: dict[str, Any] = {
        "labeler_accuracy": float(right),
        "correlation": correlation if correlation >= _LEAST_CORRELATION else 0.0,
        "n_classes": labels.n_classes,
        "prior": [float(share) for share in posterior.mean(axis=0)],
    }
    if predictions is not None:
        codes = read_systems(predictions, labels, how_predicted, how).align(labels).codes
        if codes is None:
            raise InvalidPredictions("predictions must name classes, got scores alone; add a column 'prediction'")
        right_of = [posterior[there, row[there]] for row in codes if (there := row >= 0).any()]
        errors = [1 - float(chances.mean()) for chances in right_of]
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


def _show(body: Mapping[str, Any]) -> None:
    assumed, learned = body["assumed"], body["learned"]
    names = {"labeler_accuracy": "labelers' accuracy", "error": "model's error", "correlation": "correlation"}
    from_votes = ", ".join(f"{label} {assumed[name]:.3f}" for name, label in names.items() if name in learned)
    if from_votes:
        say(f"From the votes: {from_votes} (options of these names overrule them).")
    parts = [f"{body['n_items']:,} items"]
    parts += [f"{body['votes_per_item']} votes on each"] if body["votes_per_item"] else []
    parts += [f"{body['n_vettings']:,} checked by the expert"] if body["n_vettings"] else []
    say(
        f"Buy {', '.join(parts)}: accuracy ± {body['half_width']:.4f} at {level_words(body['level'])}, for "
        f"{body['cost']:,.6g} of {body['budget']:,.6g}."
    )
    for sentence in body["notes"]:
        say(f"! {sentence}")
    best = {design["kind"]: design for design in reversed(body["alternatives"])}
    others = body["frontier"]
    for title, designs in (
        ("The best of each kind at this budget", sorted(best.values(), key=lambda design: design["half_width"])),
        ("What other budgets buy", others[:: max(len(others) // _SHOWN, 1)]),
    ):
        columns: dict[Any, Any] = {"kind": "kind", "items": "n_items", "votes each": "votes_per_item"}
        columns |= {"checked": "n_vettings", "half-width": "half_width", "cost": lambda row: f"{row['cost']:,.6g}"}
        print_records(columns, designs, title=title, places=4)


def _about(design: Design) -> dict[str, Any]:
    names = ("kind", "n_items", "votes_per_item", "n_vettings", "half_width", "cost")
    return {name: getattr(design, name) for name in names}
