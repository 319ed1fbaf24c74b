"""What a reader of alarms should know of the batches behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trueup.exceptions import quoted
from trueup.monitor.attribution import LEAST_VETTED
from trueup.monitor.batch import Batch
from trueup.monitor.change import dispersions
from trueup.monitor.streams import MOST_JUDGES, History, Stream, panel_of

_MARKED = 1.5  # times the variance that items explain, from which on it is told


def remarks_on(batches: Sequence[Batch], watched: Mapping[Stream, History], *, baseline: int) -> Iterator[str]:
    """A sentence for each thing that is out of the ordinary, since the baseline began."""
    if len(batches) <= baseline:
        yield (
            f"Alarms can be raised from the {baseline + 1}th batch of a baseline on, and there "
            f"{'is' if len(batches) == 1 else 'are'} {len(batches)}."
        )
    if not batches:
        return
    yield from _on_judges(batches)
    n_drawn, n_chosen = sum(batch.n_gold for batch in batches), sum(batch.n_chosen for batch in batches)
    n_gold = sum(int((batch.equal_gold >= 0).sum()) for batch in batches)
    if n_chosen:
        yield (
            f"{n_chosen:,} vetted item{' was' if n_chosen == 1 else 's were'} chosen, not drawn at random, and left "
            "out: that says nothing sure of the others."
        )
    if n_gold < n_drawn:
        yield (
            f"{n_drawn - n_gold:,} of {n_drawn:,} vetted items {'was' if n_drawn - n_gold == 1 else 'were'} set aside "
            "at random, since items of a batch were drawn with different chances: alarms about the system and the "
            "judges rest on the others, all as if drawn with the smallest chance. Draw with one chance within a batch, "
            "or some items so for the monitor, to use them all."
        )
    if n_gold < LEAST_VETTED:
        yield (
            f"To name the system or a judge takes vetted items, drawn at random: at least {LEAST_VETTED} before a "
            f"change, got {n_gold}."
        )
    main = next((history for stream, history in watched.items() if stream.subject == "agreement"), None)
    excess = 1.0 if main is None else float(dispersions(main.hits, main.sizes)[-1])
    if len(batches) > baseline and excess >= _MARKED:
        yield (
            f"Batches differ from one another more than their items explain, by {excess:.1f} times the variance; "
            "alarms allow for it and take longer."
        )


def _on_judges(batches: Sequence[Batch]) -> Iterator[str]:
    """Who is new, who is absent, and whether judges are too many to be followed one by one."""
    panel = panel_of(batches[0])
    if panel is None:
        yield (
            f"The judges are a crowd, or more than {MOST_JUDGES}: they are followed as a whole, and no alarm is about "
            "one of them."
        )
        return
    known = list(panel)
    for batch in batches[1:]:
        new = [name for name in batch.judges if name not in known]
        known += new
        for name in new:
            yield (
                f"{quoted(name)} is new since {batch.when}: they are followed, and are not among the judges that the "
                "system is compared with."
            )
    absences = {name: [batch.when for batch in batches if name not in batch.judges] for name in panel}
    for name, times in absences.items():
        if times:
            yield (
                f"{quoted(name)} is absent from {len(times)} batch{'es' if len(times) > 1 else ''}, last {times[-1]}: "
                "there the system is compared with no majority; begin a new baseline if they stay away."
            )
