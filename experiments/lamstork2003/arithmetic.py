"""Tables 1 and 2 and Figures 1 and 2: what follows from the formulas alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.lamstork2003.report import Answer
from experiments.su2024.report import table
from trueup import rates

__all__ = ["ARITHMETIC", "BREAK_EVENS", "ERRORS", "LABELERS", "MISLABELINGS", "PREVALENCES"]

ERRORS = (0.01, 0.02, 0.05, 0.10, 0.20)
MISLABELINGS = (0.005, 0.01, 0.02, 0.05, 0.10)
PREVALENCES = (0.01, 0.10, 0.50)
BREAK_EVENS = (0.80, 0.90, 0.95, 0.99)
LABELERS = (0.90, 0.95, 0.99)
POLICIES = ((2, "optimistic"), (3, "optimistic"), (3, "majority"), (5, "majority"))


def table1(*, quick: bool = False) -> Answer:
    """Apparent error for true errors and mislabeling rates, and its increase over the true one."""
    e, eps = np.array(ERRORS)[:, None], np.array(MISLABELINGS)
    shown = np.asarray(rates.apparent_error(error=e, mislabeling=eps))
    increase = 100 * (shown / e - 1)
    rows = [
        [f"e = {error:g}", *(f"{a:.4f} ↑{up:.0f}%" for a, up in zip(shown[k], increase[k], strict=True))]
        for k, error in enumerate(ERRORS)
    ]
    back = np.asarray(rates.true_error(apparent=shown, mislabeling=eps).raw)
    rule = np.asarray(rates.rule_of_thumb(apparent=shown, mislabeling=eps))
    text = [
        "Apparent error, and its increase over the true error:",
        table(["", *(f"ε = {x:g}" for x in MISLABELINGS)], rows),
        "",
        "What the rule of thumb e ≈ A − ε makes of it:",
        table(
            ["", *(f"ε = {x:g}" for x in MISLABELINGS)],
            [[r[0], *map(float, v)] for r, v in zip(rows, rule, strict=True)],
        ),
    ]
    ours = {
        "e = 0.02, ε = 0.05: apparent error": float(shown[1, 3]),
        "e = 0.01, ε = 0.01: increase, %": float(increase[0, 1]),
        "formula inverted: largest error": float(np.abs(back - e).max()),
        "rule of thumb: largest relative error over 2ε": float((np.abs(rule / e - 1) / (2 * eps)).max()),
    }
    return "\n".join(text), ours


def table2(*, quick: bool = False) -> Answer:
    """Apparent break-even points of precision and recall."""
    rows, gaps = [], []
    for prevalence in PREVALENCES:
        shown = np.asarray(
            rates.apparent_break_even(
                break_even=np.array(BREAK_EVENS)[:, None], labeler=np.array(LABELERS), prevalence=prevalence
            )
        )
        rows += [
            [f"P(ω₁) = {prevalence:g}, actual {r:g}", *map(float, v)] for r, v in zip(BREAK_EVENS, shown, strict=True)
        ]
        back = rates.true_break_even(apparent=shown, labeler=np.array(LABELERS), prevalence=prevalence)
        gaps.append(np.abs(np.asarray(back) - np.array(BREAK_EVENS)[:, None]).max())
        gaps.append(_gap_to_matrices(prevalence))
    text = "Precision = recall against the labels of a labeler whose precision = recall is\n" + table(
        ["", *(f"{x:g}" for x in LABELERS)], rows
    )
    ours = {
        "P = 0.1, actual 0.9, labeler 0.95": float(rows[5][2]),  # type: ignore[arg-type]
        "P = 0.5, actual 0.9, labeler 0.9": float(rows[9][1]),  # type: ignore[arg-type]
        "inverse and matrices: largest error": float(max(gaps)),
    }
    return text, ours


def _gap_to_matrices(prevalence: float) -> float:
    """The same by confusion matrices: J = LᵀDM, recovered again."""

    def at(rate: float) -> list[list[float]]:
        alarm = prevalence * (1 - rate) / (1 - prevalence)
        return [[1 - alarm, alarm], [1 - rate, rate]]

    joint = rates.joint_distribution(confusion=at(0.9), labeler=at(0.95), prior=[1 - prevalence, prevalence])
    found = rates.recover_confusion(joint=joint, labeler=at(0.95))
    shown = rates.apparent_break_even(break_even=0.9, labeler=0.95, prevalence=prevalence)
    return max(
        abs(float(found.metric("precision")) - 0.9),
        abs(float(found.metric("recall")) - 0.9),
        abs(joint[1, 1] / joint[1].sum() - float(shown)),
    )


def worth(*, quick: bool = False) -> Answer:
    """The numbers of Figure 1: noisy labels that one perfect label is worth."""
    e, eps = np.array(ERRORS)[:, None], np.array(MISLABELINGS)
    ratio = np.asarray(rates.noisy_labels_per_perfect(error=e, mislabeling=eps))
    rows = [[f"e = {error:g}", *(f"{v:.2f}" for v in row)] for error, row in zip(ERRORS, ratio, strict=True)]
    fine = np.linspace(0.001, 0.1, 100)
    grid = np.asarray(rates.noisy_labels_per_perfect(error=fine[:, None], mislabeling=fine))
    below = fine[:, None] >= fine
    n = 20_000 if quick else 200_000
    ours = {
        "e = 0.1, ε = 0.05": float(ratio[3, 3]),
        "largest with ε ≤ e ≤ 0.1": float(grid[below].max()),
        "largest with ε ≤ e ≤ 0.05": float(grid[below & (fine[:, None] <= 0.05)].max()),
        "variances of a simulation, e = 0.1, ε = 0.05": _simulated_worth(0.1, 0.05, n),
    }
    return "Noisy labels worth a perfect one:\n" + table(["", *(f"ε = {x:g}" for x in MISLABELINGS)], rows), ours


def _simulated_worth(error: float, mislabeling: float, n_runs: int) -> float:
    """Truths, labels and predictions of 100 items, drawn; the ratio of the variances of both estimates."""
    rng = np.random.default_rng(0)
    estimates = []
    for _ in range(max(n_runs // 2000, 1)):
        wrong = rng.random((2000, 100)) < error
        mislabeled = rng.random((2000, 100)) < mislabeling
        noisy = rates.true_error(apparent=(wrong != mislabeled).mean(axis=1), mislabeling=mislabeling).raw
        estimates.append(np.stack([np.asarray(noisy), wrong.mean(axis=1)]))
    both = np.concatenate(estimates, axis=1)
    return float(both[0].var() / both[1].var())


def policy(*, quick: bool = False) -> Answer:
    """The numbers of Figure 2: the true error below which the same items should be labeled."""
    eps = np.array([*MISLABELINGS, 0.2, 0.3])
    rows, ours = [], {}
    for k, combine in POLICIES:
        boundary = np.asarray(rates.policy_boundary(mislabeling=eps, n_labelers=k, combine=combine))  # type: ignore[arg-type]
        rows.append([f"K = {k}, {combine}", *map(float, boundary)])
        ours[f"K = {k}, {combine}, ε = 0.05: boundary"] = float(boundary[3])
    realistic = np.linspace(0.002, 0.05, 25)
    for k, combine in POLICIES:
        chosen = rates.labeling_policy(
            error=np.linspace(0.05, 0.3, 26)[:, None],
            mislabeling=realistic,
            n_labelers=k,
            combine=combine,  # type: ignore[arg-type]
        ).best
        ours[f"K = {k}, {combine}: share of e in 0.05–0.3, ε ≤ 0.05 where different items win"] = float(
            np.mean(np.asarray(chosen) == "different")
        )
    text = "True error below which K labelers should look at the same items (0: never, 0.5: always):\n"
    return text + table(["", *(f"ε = {x:g}" for x in eps)], rows), ours


ARITHMETIC: dict[str, Callable[..., Answer]] = {"table1": table1, "table2": table2, "figure1": worth, "figure2": policy}
