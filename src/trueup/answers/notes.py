"""What a user should read before trusting an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from trueup._base.types import Booleans, Floats
from trueup._base.validation import numbers_of, preview
from trueup._base.wording import percent
from trueup.answers.prepare import Task
from trueup.data.labels import Labels, part_of
from trueup.estimators.system_values import counts_right_only
from trueup.estimators.truth import is_drawn
from trueup.noise import DawidSkene, IndependenceCheck, NoiseModel, check_independence, identifiability_problem

HOW_TO_CHECK = (
    'check items drawn at random (`trueup.labelers.draw_sample`) and pass them with `drawn="random"`: these correct '
    "what votes say"
)
_SURELY = 0.001  # the chance of a false alarm
_REMEDY = (
    'if someone chose them, say so with `drawn="chosen"`, or the numbers are those of such items only, and not of all'
)
_CHECKED_VOTES = 10_000  # that the check of independence looks at
_FAR, _RARE = 1.5, 0.01  # times the usual step, and of all votes: an end of a scale that may not belong to it


def notes_on(
    task: Task,
    model: NoiseModel | None,
    *,
    check_dependence: bool,
    notes: Sequence[str] = (),
    counts: Floats | None = None,
) -> tuple[tuple[str, ...], IndependenceCheck | None]:
    """Sentences, the gravest first, and the independence check if it was made."""
    labels = task.labels
    found = [*task.notes, *_many_numbers(task), *_ratings_apart(task), *_classes_of_gold_alone(labels)]
    found += [*unanimous_votes(labels), *design_doubts(labels)]
    independence = None
    learns = model is None or not model.is_known
    if learns and model is not None and not is_drawn(model):
        found.append(
            f"The noise model {type(model).__name__} was fitted and is taken as known: its uncertainty is not in the "
            'intervals; use `noise="dawid-skene"` or another that is drawn to have it there.'
        )
    if learns:
        # Where the noise is drawn with the rest, a classifier that says several classes helps to identify it.
        codes = task.outputs.codes
        varies = codes is None or len(np.unique(codes[codes >= 0])) > 1
        has_rater = model is not None and is_drawn(model) and varies
        if task.settings.entry_point != "preferences":  # which counts judges of contests, and says so itself
            found += _thin_votes(task.labels, extra_raters=int(has_rater))
        independence = dependence_of(task.labels) if check_dependence else None
    each = labels.n_votes / (labels.n_labelers * labels.n_classes)
    if isinstance(model, DawidSkene) and is_drawn(model) and labels.n_classes > 3 and each < 3:
        found.append(
            f"Labelers gave {each:.1f} votes a class on average, too few to learn a row of a matrix for each: in "
            'simulations with 2.4, 95% intervals held 90%; `noise="one-coin"` learns one number of each labeler.'
        )
    found += notes
    if independence is not None and independence.dependent:
        found.append(f"{independence.sentence} {advice_on_dependence(labels, independence, model)}")
    found += _copies_of_labelers(task)
    metrics, n_classes = task.metrics.values(), labels.n_classes
    if counts is not None and not all(m.needs == "counts" and counts_right_only(m, n_classes) for m in metrics):
        found += _rare_classes(labels, counts)
    found += sampling_unknown(labels)
    return tuple(found), independence


def about_votes(labels: Labels) -> tuple[list[str], IndependenceCheck | None]:
    """What votes and gold alone give reason to say, and the independence check; None where no item has two votes."""
    independence = dependence_of(labels)
    notes = [*design_doubts(labels), *_thin_votes(labels, extra_raters=0)]
    if independence is not None and independence.dependent:
        notes.append(independence.sentence)
    return [*notes, *sampling_unknown(labels)], independence


def advice_on_dependence(labels: Labels, check: IndependenceCheck | None, model: NoiseModel | None) -> str:
    """What to do where labelers err together: the same in every command and on every page."""
    if check is None or not check.dependent:
        return ""
    if model is not None:
        return check.advice(model)
    n_drawn = len(labels.drawn_gold)
    if n_drawn:
        return f"Checked items correct that: {n_drawn:,} were drawn at random, and more make the interval narrower."
    return f"{HOW_TO_CHECK[:1].upper()}{HOW_TO_CHECK[1:]}."


def noise_in_words(asked: NoiseModel | None, model: NoiseModel | None) -> str:
    """The noise model of an answer: its name or settings, and how it was come by."""
    if asked is None or model is None:
        return "not used"
    if asked.is_known:
        return repr(asked)
    name = asked.alias if repr(asked) == f"{type(asked).__name__}()" else repr(asked)
    if not is_drawn(model):
        return f"{name} (fitted)"
    return name if asked.alias == model.alias else f"{name} ({model.alias})"


def _many_numbers(task: Task) -> list[str]:
    """Whether classes are ratings, of which few are equal: numbers that are close where votes on an item differ."""
    labels = task.labels
    numbers = numbers_of(labels.classes.tolist())
    if labels.n_classes <= 20 or numbers is None:  # so few numbers are taken for classes without a word
        return []
    is_ordered = any(metric.order is not None for metric in task.metrics.values())
    if not is_ordered and not _are_close(labels, np.asarray(numbers, dtype=float)):
        return []
    return [
        f"The {labels.n_classes} classes are all numbers, so these look like ratings, of which few are equal; put "
        "them into bins by `labels.binned()`, and ask for `trueup.mean_score` or the metrics mae and "
        "quadratic_kappa."
    ]


def _are_close(labels: Labels, numbers: Floats) -> bool:
    """Whether numbers that differ on an item do so by less than numbers on different items, as codes do not."""
    item, _, answer, _ = labels.vote_table()
    decided = answer < labels.n_classes
    item, rank = item[decided], np.unique(numbers, return_inverse=True)[1][answer[decided]].astype(float)
    order = np.argsort(item, kind="stable")
    item, rank = item[order], rank[order]
    gaps = np.abs(np.diff(rank))[np.diff(item) == 0]
    elsewhere = np.abs(rank - np.roll(rank, len(rank) // 2))
    return bool(gaps.any() and gaps[gaps > 0].mean() < 0.6 * elsewhere.mean())  # ratings of one item


def _ratings_apart(task: Task) -> list[str]:
    """Whether the lowest or the highest rating is rare and far from the next, as a code for no answer is."""
    numbers = numbers_of(task.labels.classes.tolist())
    if numbers is None or len(numbers) < 4 or all(metric.order is None for metric in task.metrics.values()):
        return []
    order = np.argsort(numbers, kind="stable")
    values = np.asarray(numbers, dtype=float)[order]
    votes = task.labels.answer_counts.sum(axis=0)[order]
    gaps, is_rare = np.diff(values), votes < _RARE * votes.sum()
    strange = [f"{values[k]:g}" for k in (0, -1) if gaps[k] > _FAR * np.median(gaps) and is_rare[k]]
    if not strange:
        return []
    return [
        f"Hardly anybody rated {' or '.join(strange)}, which stands apart from the other ratings and is taken as "
        "one of them; if it is off the scale or means no answer, read the votes again with it as no "
        f"vote (`missing=[{strange[0]}]`)."
    ]


def unanimous_votes(labels: Labels) -> list[str]:
    """What to say where labelers never differ on an item, which independent people seldom manage."""
    several = labels.witnesses_per_item > 1
    # From here on it is odd that all agree.
    if several.sum() < 20 or ((labels.answer_counts > 0).sum(axis=1)[several] > 1).any():
        return []
    advice = "" if labels.drawn_gold else f"; {HOW_TO_CHECK}"
    return [
        f"All votes agree on each of the {int(several.sum()):,} items that several labelers judged: they do "
        f"not show how often labelers err, and copies of one labeler would look the same{advice}."
    ]


def _classes_of_gold_alone(labels: Labels) -> list[str]:
    names = labels.gold_only_classes
    if not names:
        return []
    several = labels.n_classes > 2 and labels.n_classes - len(names) == 2
    averaged = ", and metrics of two classes are now averages over all" if several else ""
    return [
        f"Only gold names {preview(names)}: whoever voted on such items was wrong{averaged}; correct the gold if "
        "that is a typing error."
    ]


def _thin_votes(labels: Labels, *, extra_raters: int) -> list[str]:
    problem = identifiability_problem(labels, extra_raters=extra_raters)
    if problem:
        return [f"{problem[0].upper()}{problem[1:]}."]
    if labels.n_votes < 2 * labels.n_items:
        return [
            f"There are {labels.n_votes / labels.n_items:.1f} votes an item on average: error rates are learned "
            "from few overlaps, so intervals are wide."
        ]
    return []


def dependence_of(labels: Labels) -> IndependenceCheck | None:
    """Whether labelers err together, against independent errors."""
    # With more, nobody can learn what each labeler takes for what.
    if not (labels.witnesses_per_item > 1).any() or labels.n_classes > 60:
        return None
    if labels.n_votes > _CHECKED_VOTES:
        share = _CHECKED_VOTES / labels.n_votes
        chosen = np.random.default_rng(0).random(labels.n_items) < share
        labels = part_of(labels, np.flatnonzero(chosen))
    # A p-value to .01, and no longer than the answer itself.
    return check_independence(labels, DawidSkene().fit(labels), n_replicates=99)


def _copies_of_labelers(task: Task) -> list[str]:
    """Systems that a labeler's votes equal almost always, on enough items to be no accident."""
    labels, systems, others = task.labels, task.outputs.systems.tolist(), np.flatnonzero(~task.in_votes).tolist()
    if task.outputs.codes is None or len(others) > 50 or labels.n_labelers < 2:  # 50 take long enough
        return []
    of_column, found = labels.votes.T, []
    for k in others:
        codes = task.outputs.codes[k]
        said = np.unique(codes[codes >= 0]).tolist()
        if len(said) < 2:  # whoever always says the same is nobody's copy
            continue
        voted = (of_column @ (codes >= 0).astype(float)).reshape(labels.n_labelers, -1).sum(axis=1)
        same = np.zeros(labels.n_labelers)
        for code in said:
            same += (of_column @ (codes == code).astype(float))[code :: labels.n_answers]
        agreement = same / np.maximum(voted, 1)
        usual = float(same.sum() / max(voted.sum(), 1))
        # A labeler is suspicious where errors differ too little: a third of the usual disagreement, and almost none.
        suspects = np.flatnonzero((voted >= 50) & (agreement > 0.985) & (1 - agreement < (1 - usual) / 3))
        if len(suspects):
            name = "The classifier" if len(systems) == 1 else f"System {systems[k]!r}"
            copied = ", ".join(map(repr, labels.labelers[suspects[:3]].tolist()))
            found.append(
                f"{name} looks like a copy of labeler {copied}: they agree on {agreement[suspects[0]]:.1%} of the "
                "items both judged; leave that labeler out with labels.without_labeler, or the classifier grades "
                "itself."
            )
    return found


def _rare_classes(labels: Labels, counts: Floats) -> list[str]:
    expected = counts.sum(axis=1)
    share = expected / max(float(expected.sum()), 1e-12)
    rare = np.flatnonzero(share < min(0.01, 5 / max(labels.n_items, 1)))
    if not len(rare):
        return []
    names = ", ".join(repr(name) for name in labels.classes[rare[:3]].tolist())
    return [
        f"Class {names} hardly occurs (expected share {share[rare[0]]:.2%}): its recall is based on almost no items."
    ]


# ------------------------------------------------------------------ how gold was drawn


def design_doubts(labels: Labels) -> list[str]:
    """Reasons to doubt that gold said to be drawn at random was: too much of one class, too contested, too easy."""
    drawn = (labels.gold_codes >= 0) & ~np.isnan(labels.gold_chance)
    chances = labels.gold_chance[drawn]
    if not len(chances) or drawn.all() or not np.allclose(chances, chances[0]):
        return []
    of_classes = _doubt_of_classes(labels, drawn) or _doubt_of_one_class(labels, drawn)
    return [*of_classes, *_doubt_of_agreement(labels, drawn)]


def _doubt_of_classes(labels: Labels, drawn: Booleans) -> list[str]:
    """Whether the votes on the gold items name a class more often than chance gives those on any items."""
    voted = labels.votes_per_item > 0
    majority = labels.answer_counts[:, : labels.n_classes].argmax(axis=1)
    counts = np.bincount(majority[voted], minlength=labels.n_classes)
    in_gold = np.bincount(majority[voted & drawn], minlength=labels.n_classes)
    n_items, n_gold = int(voted.sum()), int((voted & drawn).sum())
    chance = np.asarray(scipy.stats.hypergeom.sf(in_gold - 1, n_items, counts, n_gold))
    most = int(chance.argmin())
    if chance[most] * labels.n_classes >= _SURELY:
        return []
    name = repr(labels.classes[[most]].tolist()[0])
    return [
        f"The gold is declared as drawn at random, but most votes are for {name} on {in_gold[most]:,} of its "
        f"{n_gold:,} items and on {percent(counts[most] / n_items)} of all: chance gives that in less than one of "
        f"1,000 samples; {_REMEDY}."
    ]


def _doubt_of_one_class(labels: Labels, drawn: Booleans) -> list[str]:
    """Whether all gold has one class, and votes say that other items have others."""
    truths = labels.gold_codes[drawn]
    if len(truths) < 10 or np.ptp(truths):
        return []
    counts = labels.answer_counts[:, : labels.n_classes]
    n_votes = counts.sum(axis=1)
    share = counts[:, truths[0]] / np.maximum(n_votes, 1)
    gold, others = share[drawn & (n_votes > 0)], share[~drawn & (n_votes > 0)]
    if not len(gold) or not len(others) or np.ptp(share[n_votes > 0]) == 0:
        return []
    # A chance of 1% is enough, since gold of one class is strange by itself.
    if _chance_of_ranks(gold, others, one_sided=True) >= 0.01:
        return []
    name = repr(labels.classes[[truths[0]]].tolist()[0])
    return [
        f"The gold is declared as drawn at random, but all {len(truths):,} items have the class {name}, which "
        f"{percent(gold.mean())} of the votes name there and {percent(others.mean())} elsewhere: chance gives such "
        f"votes in less than one of 100 samples; {_REMEDY}."
    ]


def _doubt_of_agreement(labels: Labels, drawn: Booleans) -> list[str]:
    """Whether labelers agree less, or more, on the gold items than chance gives."""
    counts, n_votes = labels.answer_counts, labels.answer_counts.sum(axis=1)
    pairs = n_votes * (n_votes - 1)
    agreement, several = (counts * (counts - 1)).sum(axis=1) / np.maximum(pairs, 1), np.asarray(pairs > 0)
    gold, others = agreement[several & drawn], agreement[several & ~drawn]
    if not len(gold) or not len(others) or np.ptp(agreement[several]) == 0:
        return []
    if _chance_of_ranks(gold, others) >= _SURELY:
        return []
    what = "contested items" if gold.mean() < others.mean() else "items that labelers agree on"
    return [
        f"The gold is declared as drawn at random, but it has too many {what}: two votes on an item agree in "
        f"{percent(gold.mean())} of its items and in {percent(others.mean())} of the others, which chance gives in "
        f"less than one of 1,000 samples; {_REMEDY}."
    ]


def _chance_of_ranks(some: Floats, others: Floats, *, one_sided: bool = False) -> float:
    """The p-value of Mann and Whitney's test by the normal distribution, in a tenth of the time that scipy takes."""
    n, m = len(some), len(others)
    _, place, sizes = np.unique(np.concatenate([some, others]), return_inverse=True, return_counts=True)
    ranks = np.cumsum(sizes) - (sizes - 1) / 2
    excess = float(ranks[place[:n]].sum()) - n * (n + m + 1) / 2
    ties = float((sizes**3 - sizes).sum()) / ((n + m) * (n + m - 1))
    z = ((excess if one_sided else abs(excess)) - 0.5) / np.sqrt(n * m / 12 * (n + m + 1 - ties))
    return float(scipy.special.ndtr(-z)) * (1 if one_sided else 2)


def sampling_unknown(labels: Labels) -> list[str]:
    """The note on gold that is taken as chosen, since the caller did not say how it was drawn."""
    known = (labels.gold_codes >= 0) | (labels.held_codes >= 0)
    n_chosen = int((known & np.isnan(labels.gold_chance)).sum())
    if not n_chosen or known.all():
        return []
    some = f"{n_chosen:,} of {int(known.sum()):,} checked items are" if n_chosen > 1 else "A checked item is"
    one_or_more = ("they stand for themselves", "they were") if n_chosen > 1 else ("it stands for itself", "it was")
    return [
        f"{some} taken as chosen, so that {one_or_more[0]} only; if {one_or_more[1]} drawn at random, say so: "
        '`labels.with_gold` with `drawn="random"`.'
    ]
