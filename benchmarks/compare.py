"""Does label noise decide between systems? Rankings and differences on simulated and real data.

Run ``python -m benchmarks.compare [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: null (two systems that differ by nothing), auc (coverage of the posterior of the AUC), cifar (five networks,
one human vote an image), real (pairs of real labelers as systems), many (a hundred checkpoints), several (up to 20
systems that share their errors), soft (ambiguous items).
Simulations are seeded; real data are found through TRUEUP_DATA. Truth is used for measuring only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._coverage_cifar import drawn_labels, load_cifar
from benchmarks._coverage_tally import LEVEL, Section, Tally, as_text, say, share, tracked
from benchmarks._data import CROWD_SETS, JUDGE_SETS, load_crowd
from benchmarks._sections import run_sections

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SEED = 5
_PAIRS_A_SET = 6
_LEAST_COMMON = 40


def crowd(rng: np.random.Generator, n_items: int, n_labelers: int = 8) -> tuple[tu.Labels, Codes]:
    """Two classes, labelers who are right with 55 to 95%, each votes on half of the items."""
    skill = rng.uniform(0.55, 0.95, n_labelers)
    truth = (rng.random(n_items) < 0.4).astype(np.int64)
    votes = np.where(rng.random((n_items, n_labelers)) < skill, truth[:, None], 1 - truth[:, None])
    votes[rng.random(votes.shape) < 0.5] = -1
    silent = (votes < 0).all(axis=1)
    votes[silent, 0] = np.where(rng.random(silent.sum()) < skill[0], truth[silent], 1 - truth[silent])
    return tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1]), truth


def twins(rng: np.random.Generator, truth: Codes) -> tuple[Floats, Floats]:
    """Scores of two systems of one quality that share most of their errors."""
    shared = 1.5 * truth + 0.8 * rng.normal(size=len(truth))
    return shared + 0.7 * rng.normal(size=len(truth)), shared + 0.7 * rng.normal(size=len(truth))


def null(quick: bool) -> Section:
    """How often two systems of one quality are called different, by trueup and by a paired test on majority labels."""
    n_runs = 20 if quick else 100
    rows, numbers = [], {}
    for metric in ("accuracy", "auc"):
        for noise in ("dawid-skene", "clusters"):
            apart, held, differences = 0, Tally(), []
            rng = np.random.default_rng(SEED)
            for run in tracked(range(n_runs), f"null, {metric}, {noise}"):
                labels, truth = crowd(rng, 400)
                scores = dict(zip("ab", twins(rng, truth), strict=True))
                systems = scores if metric == "auc" else {k: (s > 0.75).astype(int) for k, s in scores.items()}
                cmp = tu.compare(
                    systems,
                    labels,
                    metric=metric,
                    noise=noise,
                    target="population",
                    check_dependence=False,
                    random_state=run,
                )
                apart += cmp.told_apart("a", "b")
                held.add(0.0, cmp.difference("a", "b"))
                differences.append(cmp.difference("a", "b").mean)
            error = np.sqrt(max(apart, 1) / n_runs * (1 - apart / n_runs) / n_runs)
            rows.append(
                [
                    metric,
                    noise,
                    f"{100 * apart / n_runs:.1f} ± {100 * error:.1f}",
                    f"{held.width:.3f}",
                    f"{held.bias:+.4f}",
                ]
            )
            numbers[f"{metric}, {noise}"] = {"told apart": apart / n_runs, "width": held.width, "runs": n_runs}
    text = (
        f"Two systems of one quality, 400 items, 8 labelers, {n_runs} runs; the population is asked for\n\n"
        + as_text(["metric", "noise", "called different %", "width", "mean difference"], rows, left=(0, 1))
        + "\n\nAsked: at most 6%."
    )
    return Section(text, numbers)


def auc(quick: bool) -> Section:
    """Coverage of the posterior of the AUC on these items, where labelers err independently."""
    n_runs = 20 if quick else 100
    rows, numbers = [], {}
    for noise in ("dawid-skene", "clusters"):
        tally, dirty = Tally(), []
        rng = np.random.default_rng(SEED + 1)
        for run in tracked(range(n_runs), f"auc, {noise}"):
            labels, truth = crowd(rng, 400)
            score, _ = twins(rng, truth)
            true = float(tu.metrics.auc(truth[None], score)[0])
            tally.add(true, tu.auc(score, labels, noise=noise, random_state=run))
            dirty.append(tu.auc(score, labels, view="deterministic", random_state=run).mean - true)
        rows.append([noise, share(tally), f"{tally.width:.3f}", f"{tally.bias:+.4f}", f"{np.mean(dirty):+.4f}"])
        numbers[noise] = {**tally.numbers(), "bias of the majority's": float(np.mean(dirty))}
    head = ["noise", "95% interval holds %", "width", "mean error", "mean error with majority labels"]
    text = f"AUC of one system from the votes, 400 items, 8 labelers, {n_runs} runs\n\n" + as_text(head, rows)
    return Section(text + "\n\nAsked: at least 93% where the model class holds.", numbers)


def cifar(quick: bool) -> Section:
    """Five networks ranked from one anonymous human vote an image."""
    counts, truth, nets = load_cifar()
    true = {name: float((codes == truth).mean()) for name, codes in nets.items()}
    right = sorted(true, key=lambda name: -true[name])
    rows, numbers = [], {}
    for repetition in range(1 if quick else 3):
        labels = drawn_labels(counts, 1, seed=repetition)
        vote = labels.answer_counts.argmax(axis=1)
        agreement = {name: float((codes == vote).mean()) for name, codes in nets.items()}
        for noise in ("dawid-skene", "clusters"):
            cmp = tu.compare(
                nets, labels, noise=noise, target="population", check_dependence=False, random_state=repetition,
                n_draws=400 if quick else 2000, n_warmup=200 if quick else 500,
            )  # fmt: skip
            for name in right:
                low, high = cmp[name].interval(LEVEL)
                rows.append(
                    [
                        str(repetition), noise, name, f"{true[name]:.4f}", f"{agreement[name]:.4f}",
                        f"{cmp[name].mean:.4f}", f"{low:.4f} to {high:.4f}", f"{cmp.prob_best[name]:.3f}",
                    ]
                )  # fmt: skip
            wrong = float((cmp.truth.posterior.argmax(axis=1) != truth).mean())
            numbers[f"{repetition}, {noise}"] = {
                "truths wrong": wrong,
                "ranking right": cmp.ranking == right,
                "prob_best": cmp.prob_best[right[0]],
                "agreement ranks right": sorted(agreement, key=lambda name: -agreement[name]) == right,
            }
            shown = f"{cmp.ranking == right}, {cmp.prob_best[right[0]]:.3f}, truths wrong {wrong:.4f}"
            say(f"  draw {repetition}, {noise}: {shown}")
    head = ["draw", "noise", "network", "accuracy", "agrees with the vote", "estimate", "95% interval", "prob_best"]
    good = sum(n["ranking right"] for n in numbers.values())
    plain = sum(n["agreement ranks right"] for n in numbers.values())
    text = as_text(head, rows, left=(0, 1, 2)) + (
        f"\n\nThe ranking is right in {good} of {len(numbers)} cases, that by agreement with the vote in {plain}. "
        "Asked: right, and prob_best of the best at least 0.95."
    )
    return Section("CIFAR-10H, one human vote an image (population)\n\n" + text, numbers)


def real(quick: bool) -> Section:
    """Pairs of real labelers as systems, judged from the others' votes; these very items."""
    sets = ("crowd-bluebird",) if quick else (*CROWD_SETS, *JUDGE_SETS)
    noises = ("dawid-skene", "clusters")
    total = {noise: Tally() for noise in noises}
    claims = {noise: [0, 0] for noise in noises}
    rows = []
    for name in sets:
        labels, truth = load_crowd(name)
        found = {noise: Tally() for noise in noises}
        for a, b, at in _pairs(labels, truth):
            names = labels.labelers[[a, b]].tolist()
            systems = labels.as_systems().align(labels, missing="ignore").codes
            assert systems is not None
            votes = {
                who: tu.Predictions.from_classes(labels.classes[systems[t, at]], items=labels.items[at].tolist())
                for who, t in zip("ab", (a, b), strict=True)
            }
            true = float((systems[a, at] == truth[at]).mean() - (systems[b, at] == truth[at]).mean())
            others = labels.without_labeler(*names)
            for noise in noises:
                cmp = tu.compare(
                    votes, others, noise=noise, target="sample", check_dependence=False, random_state=SEED,
                    n_draws=1200, n_warmup=400,
                )  # fmt: skip
                difference = cmp.difference("a", "b")
                found[noise].add(true, difference)
                if cmp.told_apart("a", "b"):
                    claims[noise][0] += 1
                    claims[noise][1] += difference.mean * true <= 0
        for noise in noises:
            if len(found[noise]):
                total[noise] = total[noise] + found[noise]
                rows.append(
                    [
                        name,
                        noise,
                        str(len(found[noise])),
                        share(found[noise]),
                        f"{found[noise].width:.3f}",
                        f"{found[noise].mae:.3f}",
                    ]
                )
        say(f"  {name}: {len(found['clusters'])} pairs")
    for noise in noises:
        rows.append(
            [
                "all",
                noise,
                str(len(total[noise])),
                share(total[noise]),
                f"{total[noise].width:.3f}",
                f"{total[noise].mae:.3f}",
            ]
        )
    head = ["set", "noise", "pairs", "95% interval holds %", "width", "mean |error|"]
    said = "; ".join(
        f"{noise} tells {c} of {len(total[noise])} pairs apart, {w} of these in the wrong order"
        for noise, (c, w) in claims.items()
    )
    text = "Difference in accuracy of two labelers on the items both judged\n\n" + as_text(head, rows, left=(0, 1))
    numbers = {n: {**t.numbers(), "claims": claims[n][0], "wrong": claims[n][1]} for n, t in total.items()}
    return Section(f"{text}\n\n{said}.", numbers)


def _pairs(labels: tu.Labels, truth: Codes) -> list[tuple[int, int, npt.NDArray[np.int64]]]:
    """Some pairs of the seven labelers with most votes that share enough items with a known truth."""
    codes = labels.as_systems().align(labels, missing="ignore").codes
    assert codes is not None
    top = np.argsort(-labels.votes_per_labeler, kind="stable")[:7].tolist()
    pairs = []
    for a, b in combinations(top, 2):
        at = np.flatnonzero((codes[a] >= 0) & (codes[b] >= 0) & (truth >= 0))
        if len(at) >= _LEAST_COMMON:
            pairs.append((a, b, at))
    chosen = np.random.default_rng(SEED).permutation(len(pairs))[:_PAIRS_A_SET]
    return [pairs[k] for k in sorted(chosen.tolist())]


def many(quick: bool) -> Section:
    """A hundred checkpoints of one model: how good the one that is picked truly is."""
    n_runs = 3 if quick else 30
    picked: dict[str, list[float]] = {"compare": [], "majority labels": [], "one vote": []}
    said = []
    rng = np.random.default_rng(SEED + 2)
    for run in tracked(range(n_runs), "many"):
        labels, truth = crowd(rng, 1000)
        shared = 1.5 * truth + 0.5 * rng.normal(size=1000)
        blur = np.abs(np.linspace(-1.2, 1.0, 100)) + 0.6
        scores = {k: shared + blur[k] * rng.normal(size=1000) for k in range(100)}
        true = np.array([tu.metrics.auc(truth[None], s)[0] for s in scores.values()])
        cmp = tu.compare(
            scores,
            labels,
            metric="auc",
            noise="dawid-skene",
            target="population",
            check_dependence=False,
            random_state=run,
        )
        picked["compare"].append(true.max() - true[cmp.best])
        said.append(cmp.expected_regret)
        majority = tu.estimators.deterministic(labels, np.stack(list(scores.values())), random_state=run).values
        picked["majority labels"].append(true.max() - true[int(np.argmax(majority))])
        first = np.array([row.indices[0] % 2 if row.nnz else 0 for row in labels.votes])
        dirty = np.array([tu.metrics.auc(first[None], s)[0] for s in scores.values()])
        picked["one vote"].append(true.max() - true[int(np.argmax(dirty))])
    rows = [[name, f"{np.mean(lost):.4f}", f"{np.std(lost) / np.sqrt(n_runs):.4f}"] for name, lost in picked.items()]
    text = f"AUC lost by the pick of 100 checkpoints, 1000 items, {n_runs} runs\n\n" + as_text(
        ["picked by", "lost", "standard error"], rows
    )
    text += f"\n\ncompare expected to lose {np.mean(said):.4f} (of the population)."
    return Section(
        text, {name: float(np.mean(lost)) for name, lost in picked.items()} | {"expected": float(np.mean(said))}
    )


def several(quick: bool) -> Section:
    """Do intervals of differences hold with more systems, which share their errors? Known noise, these items."""
    n_runs = 5 if quick else 40
    rows, numbers = [], {}
    for n_systems in (2, 5, 8, 20):
        for metric in ("accuracy", "auc"):
            tally, single = Tally(), Tally()
            rng = np.random.default_rng(SEED + 3)
            for run in tracked(range(n_runs), f"several, {n_systems}, {metric}"):
                sim = tu.simulate.dawid_skene(n_items=400, n_labelers=8, votes_per_item=4, random_state=rng)
                known = tu.noise.Confusion(sim.parameters["confusion"], prior=sim.parameters["prior"])
                shared = 1.5 * sim.truth + 0.8 * rng.normal(size=400)
                blur = np.where(np.arange(n_systems) % 2, 0.6, 1.0)
                scores = {k: shared + blur[k] * rng.normal(size=400) for k in range(n_systems)}
                systems = scores if metric == "auc" else {k: (s > 0.75).astype(int) for k, s in scores.items()}
                cmp = tu.compare(
                    systems, sim.labels, metric=metric, noise=known, target="sample", n_draws=400, random_state=run
                )
                truth = sim.truth[None]
                true = [
                    float(tu.metrics.auc(truth, s)[0] if metric == "auc" else (s == sim.truth).mean())
                    for s in systems.values()
                ]
                single.add(true[0], cmp[0])
                for k in range(n_systems - 1):
                    tally.add(true[k] - true[k + 1], cmp.difference(k, k + 1))
            rows.append(
                [str(n_systems), metric, share(tally), share(single), f"{tally.width:.3f}", f"{single.bias:+.4f}"]
            )
            numbers[f"{n_systems}, {metric}"] = {"difference": tally.numbers(), "single": single.numbers()}
    head = ["systems", "metric", "differences hold %", "one system holds %", "width", "mean error of one"]
    return Section(
        f"Systems that share their errors, known noise, 400 items, {n_runs} runs (cases of a run share a truth)\n\n"
        + as_text(head, rows, left=(0, 1)),
        numbers,
    )


def soft(quick: bool) -> Section:
    """The AUC where items are ambiguous (Urkullu's simulator): what hard-class models make of it."""
    n_runs = 2 if quick else 10
    noises = ("soft-truth", "dawid-skene", "clusters")
    found = {noise: Tally() for noise in noises}
    for seed in tracked(range(n_runs), "soft"):
        sim = tu.simulate.urkullu(n_items=400, n_classifiers=2, labels_per_item=9, case="good", random_state=seed)
        true = float(tu.metrics.auc(sim.truth[None], sim.scores[0])[0])
        for noise in noises:
            found[noise].add(true, tu.auc(sim.scores[0], sim.labels, noise=noise, random_state=seed))
    rows = [[noise, f"{t.bias:+.3f}", share(t), f"{t.width:.3f}"] for noise, t in found.items()]
    text = (
        f"AUC with the drawn class, 400 items of Urkullu's simulator, good labelers, 9 votes an item, {n_runs} runs\n\n"
    )
    return Section(
        text + as_text(["noise", "mean error", "95% interval holds %", "width"], rows),
        {noise: t.numbers() for noise, t in found.items()},
    )


SECTIONS: dict[str, Callable[[bool], Section]] = {
    "null": null,
    "auc": auc,
    "cifar": cifar,
    "real": real,
    "many": many,
    "several": several,
    "soft": soft,
}


def main(arguments: Sequence[str] | None = None) -> None:
    run_sections("python -m benchmarks.compare", __doc__.splitlines()[0], SECTIONS, arguments)


if __name__ == "__main__":
    main()
