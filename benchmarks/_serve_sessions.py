"""Sessions of 20 experts at once, hard items slower and sometimes without an answer: do the intervals hold?

A pool is fitted once and used for several sessions. An expert takes the first card of the queue; a hard item takes
three times as long, and one in five is put off or given up. Every look at a session is one at all outcomes that are
there by then, as an owner has it who watches the page. The estimates are those of `trueup.active.session`, which
`ActiveTest` uses, on answers counted by `trueup.sessions.progress`.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import LEVEL, Tally, as_text, inside, share, tracked
from trueup._base.types import Booleans, Codes, Floats
from trueup.active import ESTIMATORS, State, get_strategy
from trueup.active.estimators import ENOUGH_DRAWS, as_estimate
from trueup.active.session import Estimation, anytime_interval
from trueup.active.strategies import Random
from trueup.posteriors import Estimate
from trueup.sessions.progress import Counted, Progress, count_answers, no_progress
from trueup.sessions.session import draw_in_turn

N_ITEMS, N_VOTES, N_OUTCOMES = 300, 5, 200
LOOKS = tuple(range(80, N_OUTCOMES + 1, 40))
REFILL = 50  # cards that are drawn at a time
HALF_WIDTHS = (0.1, 0.07)
SESSIONS_OF_A_POOL = 40
STRATEGIES = ("propensity", "random")
WARRANTED = ("rectified", "vetted-only", "ppi++", "lure")
BELIEVING = ("bayes",)  # no promise where votes are wrong together; measured on fewer sessions


@dataclass(frozen=True)
class Experts:
    """Those who answer at once; times are drawn from a gamma law of shape 2."""

    n: int = 20
    slower: float = 3.0  # how many times as long a hard item takes
    later: float = 0.1  # share of hard items that are put off
    cannot_tell: float = 0.1  # share of hard items whose class they cannot tell


@dataclass(frozen=True, eq=False)
class World:
    """A pool with its truth: votes and two systems that are all worse on the hard items."""

    seed: int

    @cached_property
    def _drawn(self) -> tuple[Codes, Booleans, tu.Labels, dict[str, Codes]]:
        rng = np.random.default_rng([self.seed, 91])
        truth, hard = rng.integers(2, size=N_ITEMS), rng.random(N_ITEMS) < 0.3

        def said(easy: float, hard_ones: float, shape: tuple[int, ...]) -> Codes:
            skill = np.where(hard, hard_ones, easy).reshape(N_ITEMS, *[1] * (len(shape) - 1))
            right = rng.random(shape) < skill
            return np.where(right, truth.reshape(skill.shape), 1 - truth.reshape(skill.shape))

        votes = said(0.85, 0.55, (N_ITEMS, N_VOTES))
        systems = {"new": said(0.93, 0.65, (N_ITEMS,)), "old": said(0.91, 0.63, (N_ITEMS,))}
        return truth, hard, tu.Labels.from_matrix(votes, classes=[0, 1]), systems

    @property
    def truth(self) -> Codes:
        """The class of each item."""
        return self._drawn[0]

    @property
    def hard(self) -> Booleans:
        """Which items are hard."""
        return self._drawn[1]

    def value(self, name: str = "new") -> float:
        """The true accuracy of a system."""
        return float((self._drawn[3][name] == self.truth).mean())

    @cached_property
    def test(self) -> tu.ActiveTest:
        """A session on this pool, for its pool alone."""
        return tu.ActiveTest(self._drawn[3], self._drawn[2], random_state=0)

    @cached_property
    def estimations(self) -> dict[str, Estimation]:
        """One for each estimator, with what is fitted in common."""
        return {name: Estimation(self.test.pool, ESTIMATORS[name](), self.test.noise) for name in ESTIMATORS}


@dataclass(frozen=True, eq=False)
class Run:
    """One session: the draws in their order, when each had its outcome, and what it was."""

    world: World
    items: Codes
    chances: Floats
    ends: Floats
    told: Booleans

    def progress(self, n_outcomes: int) -> Progress:
        """Where the session stood when it had so many outcomes."""
        done = self.ends <= np.sort(self.ends)[n_outcomes - 1]
        return self._progress(self.items, done)

    def _progress(self, items: Codes, done: Booleans) -> Progress:
        start = no_progress(N_ITEMS)
        truth, cannot_tell, waiting = start.truth.copy(), start.cannot_tell.copy(), start.waiting.copy()
        draw, propensity = start.draw.copy(), start.propensity.copy()
        draw[items], propensity[items] = np.arange(1, len(items) + 1), self.chances[: len(items)]
        answered = done & self.told
        truth[items[answered]] = self.world.truth[items[answered]]
        cannot_tell[items[done & ~self.told]] = True
        waiting[items[~done]] = True
        return replace(
            start,
            truth=truth,
            unswayed=truth,
            cannot_tell=cannot_tell,
            waiting=waiting,
            draw=draw,
            propensity=propensity,
            n_tells=int(answered.sum()),
        )


def run_session(world: World, strategy: str, seed: int, experts: Experts) -> Run:
    """Let experts work until there are enough outcomes; cards are drawn ahead, from what is known by then."""
    rng = np.random.default_rng([seed, world.seed, 5])
    how = get_strategy(strategy)
    run = Run(world, np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, bool))
    free = [(0.0, k) for k in range(experts.n)]
    put_off: list[tuple[int, int]] = []
    next_card, n_done = 0, 0
    while n_done < N_OUTCOMES + 2 * experts.n:  # nobody stops at the last look
        now, who = heapq.heappop(free)
        mine = next((k for k, (_, by) in enumerate(put_off) if by != who), None)
        if mine is not None:
            card = put_off.pop(mine)[0]
        else:
            if next_card == len(run.items):
                run = _with_cards(run, how, now, rng)
            card, next_card = next_card, next_card + 1
        is_hard = bool(world.hard[run.items[card]])
        end = now + rng.gamma(2.0, (experts.slower if is_hard else 1.0) / 2)
        heapq.heappush(free, (end, who))
        coin = rng.random() if is_hard else 1.0
        if coin < experts.later:
            put_off.append((card, who))
        else:
            run.ends[card], run.told[card] = end, coin >= experts.later + experts.cannot_tell
            n_done += 1
    return run


def _with_cards(run: Run, how: Any, now: float, rng: np.random.Generator) -> Run:
    """More draws, with the chances that a strategy gives after the answers that are there now."""
    world = run.world
    progress = run._progress(run.items, run.ends <= now)
    model = world.estimations["rectified"]
    # What is believed takes most of the time, and even draws do not look at it.
    seen = no_progress(N_ITEMS) if isinstance(how, Random) else progress
    believed = model.estimator.believed(model.pool, seen, model.model)
    available = progress.draw == 0
    state = State(model.pool, believed, progress.vetted, available)
    chosen, chances = draw_in_turn(how.scores(state), REFILL, rng)
    return replace(
        run,
        items=np.concatenate([run.items, chosen]).astype(np.int64),
        chances=np.concatenate([run.chances, np.array(chances, dtype=float)]),
        ends=np.concatenate([run.ends, np.full(len(chosen), math.inf)]),
        told=np.concatenate([run.told, np.zeros(len(chosen), dtype=bool)]),
    )


@dataclass
class Tallies:
    """What was counted, by estimator and by what: a look, a rule."""

    looks: dict[tuple[str, str, int], Tally] = field(default_factory=lambda: defaultdict(Tally))
    every_look: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    stops: dict[tuple[str, str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    stopped_at: dict[tuple[str, str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    orders: dict[tuple[str, str], list[bool]] = field(default_factory=lambda: defaultdict(list))
    counted: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    undecided: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    n_sessions: int = 0

    def __add__(self, other: Tallies) -> Tallies:
        both = Tallies(n_sessions=self.n_sessions + other.n_sessions)
        for name, mine in vars(self).items():
            if isinstance(mine, dict):
                theirs, joined = getattr(other, name), getattr(both, name)
                for key in (*mine, *(key for key in theirs if key not in mine)):
                    joined[key] = mine[key] + theirs[key]
        return both


@dataclass(frozen=True)
class _Look:
    """What one look shows of one number: the plain interval, and the one that holds at every look."""

    n_draws: int
    mean: float
    plain: tuple[float, float]
    equal: tuple[float, float]
    lasting: tuple[float, float]

    @classmethod
    def of(cls, values: Floats, n_worlds: int, n_draws: int, bounds: tuple[float, float], level: float) -> _Look:
        whole = as_estimate(values, bounds, "")
        worlds: list[Estimate] = [as_estimate(part, bounds, "") for part in np.split(values, n_worlds)]
        lasting = anytime_interval(worlds, n_draws, level=level)
        return cls(n_draws, whole.mean, whole.interval(LEVEL), whole.interval(LEVEL, "equal"), lasting)


def collect(
    seeds: Iterable[int],
    estimators: Iterable[str] = WARRANTED,
    *,
    orders_every: int = 20,
    experts: Experts | None = None,
) -> Tallies:
    """Sessions of these seeds, looked at and stopped in every way; in some also the order of the two systems."""
    tallies, world = Tallies(), World(-1)
    for seed in seeds:
        if world.seed != seed // SESSIONS_OF_A_POOL:
            world = World(seed // SESSIONS_OF_A_POOL)
        run = run_session(world, STRATEGIES[seed % len(STRATEGIES)], seed, experts or Experts())
        tallies.n_sessions += 1
        at_looks = [count_answers(run.progress(n)) for n in LOOKS]
        for n, counted in zip(LOOKS, at_looks, strict=True):
            tallies.counted[n].append(counted.n_draws)
            tallies.undecided[n].append(int(counted.undecided.sum()))
        with_order = seed % orders_every < len(STRATEGIES)
        for name in estimators:
            _add_value(tallies, name, run, at_looks, seed)
            if with_order:
                _add_order(tallies, name, run, at_looks, seed)
            if with_order or name in ("lure", "vetted-only"):
                _add_answered(tallies, name, run, seed)
    return tallies


def _add_value(tallies: Tallies, name: str, run: Run, at_looks: list[Counted], seed: int) -> None:
    """The accuracy of the first system at every look, and where each rule stops."""
    true, looks = run.world.value(), []
    for n, counted in zip(LOOKS, at_looks, strict=True):
        if counted.n_draws < ENOUGH_DRAWS:
            continue
        estimated = run.world.estimations[name].after(counted, seed=seed)
        look = _Look.of(estimated.values[:, 0], estimated.n_worlds, counted.n_draws, (0.0, 1.0), LEVEL)
        tallies.looks[name, "counted", n].add_interval(true, look.mean, look.plain, look.equal)
        looks.append(look)
    tallies.every_look[name].append(all(inside(true, look.lasting) for look in looks))
    for width in HALF_WIDTHS:
        for rule in ("plain", "lasting"):
            at = next((look for look in looks if np.ptp(getattr(look, rule)) / 2 <= width), None)
            if at is not None:
                for shown in ("plain", "lasting"):
                    key = name, f"half-width {width:g} by the {rule} interval", shown
                    tallies.stops[key].add_interval(true, at.mean, getattr(at, shown))
                    tallies.stopped_at[key].append(at.n_draws)


def _add_order(tallies: Tallies, name: str, run: Run, at_looks: list[Counted], seed: int) -> None:
    """Which system is better: the first look at which either rule is sure, and whether it is right."""
    true = run.world.value("new") - run.world.value("old")
    open_rules = {"plain", "lasting"}
    for counted in at_looks:
        if counted.n_draws < ENOUGH_DRAWS or not open_rules:
            continue
        estimated = run.world.estimations[name].after(counted, systems=(0, 1), seed=seed)
        apart = estimated.values[:, 0] - estimated.values[:, 1]
        look = _Look.of(apart, estimated.n_worlds, counted.n_draws, (-1.0, 1.0), 2 * LEVEL - 1)
        chance = float(0.5 + 0.5 * np.sign(apart).mean())
        sure = {"plain": max(chance, 1 - chance) >= LEVEL, "lasting": look.lasting[0] > 0 or look.lasting[1] < 0}
        for rule in [rule for rule in open_rules if sure[rule]]:
            open_rules.discard(rule)
            tallies.orders[name, rule].append(bool(look.mean * true > 0))


def _add_answered(tallies: Tallies, name: str, run: Run, seed: int) -> None:
    """Today's practice beside it, at the last look: every answer that is there counts, and others are left out."""
    progress = run.progress(N_OUTCOMES)
    nothing = np.zeros(N_ITEMS, dtype=bool)
    plain = Counted(progress, nothing, nothing, 0)
    values = run.world.estimations[name].after(plain, seed=seed).values[:, 0]
    tallies.looks[name, "answered", N_OUTCOMES].add(run.world.value(), as_estimate(values, (0.0, 1.0), ""))


def section_of(tallies: Tallies) -> str:
    """Tables and numbers."""
    names = sorted({name for name, _, _ in tallies.looks}, key=[*WARRANTED, *BELIEVING].index)
    look_rows = []
    for name in names:
        cells = [tallies.looks[name, "counted", n] for n in LOOKS]
        plain = tallies.looks.get((name, "answered", N_OUTCOMES))
        look_rows.append([name, *map(share, cells), share(plain) if plain is not None else ""])
        look_rows.append(["  width", *(f"{cell.width:.3f}" for cell in cells), f"{plain.width:.3f}" if plain else ""])
    stop_rows = []
    for name, rule, shown in sorted(tallies.stops, key=lambda key: (names.index(key[0]), key)):
        tally = tallies.stops[name, rule, shown]
        if shown == "plain" or "lasting" in rule:
            mean = np.mean(tallies.stopped_at[name, rule, shown])
            stop_rows.append([name, rule, shown, str(len(tally)), f"{mean:.0f}", share(tally), f"{tally.width:.3f}"])
    orders = sorted(tallies.orders.items())
    order_rows = [[name, rule, str(len(right)), share(Tally(held=right))] for (name, rule), right in orders]
    every = [[name, share(Tally(held=held))] for name, held in tallies.every_look.items()]
    head = [
        "draws that count, mean: " + ", ".join(f"{np.mean(tallies.counted[n]):.0f} of {n}" for n in LOOKS),
        "of these undecided: " + ", ".join(f"{np.mean(tallies.undecided[n]):.1f}" for n in LOOKS),
    ]
    return "\n\n".join(
        [
            f"{tallies.n_sessions} sessions of 20 experts, {N_ITEMS} items of which 30% hard, 3 times as slow, 10% of "
            "them put off, 10% without an answer\n" + "\n".join(head),
            "Share of 95% intervals that hold the accuracy, at looks after so many outcomes; last: all answers there "
            "are, as if they were a random sample",
            as_text(["estimator", *map(str, LOOKS), f"{N_OUTCOMES}, answered"], look_rows),
            "At the stop: the rule, the interval that is read there, sessions, mean draws, share that hold, width",
            as_text(["estimator", "rule", "interval", "n", "draws", "holds %", "width"], stop_rows),
            "The order of two systems, stopped when sure by 95%: share that is right",
            as_text(["estimator", "by", "n", "right %"], order_rows),
            "Share of sessions in which the lasting interval holds at all looks",
            as_text(["estimator", "holds %"], every),
        ]
    )


def sessions(quick: bool) -> str:
    """20 experts at once: coverage at every look and at the stop, for every estimator."""
    n = 40 if quick else 2000
    tallies = Tallies()
    for first in tracked(range(0, n, SESSIONS_OF_A_POOL), "pools"):
        tallies = tallies + collect(range(first, min(first + SESSIONS_OF_A_POOL, n)))
    # Those that believe the votes promise nothing where these are wrong together, and take much longer.
    for first in range(0, 8 if quick else 40, 8):
        tallies = tallies + replace(
            collect(range(first * 5, first * 5 + 8), BELIEVING, orders_every=10**6), n_sessions=0
        )
    return section_of(tallies)
