"""One library's answers for `benchmarks.peers`, in a process of its own so that its memory can be told.

``python -P _peer_tasks.py TASK FOLDER``, run by the interpreter that has the library: the one that TRUEUP_PEERS names,
or the project's own for trueup. The folder holds ``<number>.npz`` files, votes of a set or samples of vetted items,
without any truth; the answers are written as ``<number>.npy``. Prints one line of JSON.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["INTERVAL_TASKS", "LABEL_TASKS", "PACKAGES"]

LEVEL = 0.95
Sample = dict[str, np.ndarray]


def beside(name: str) -> ModuleType:
    """A module of this folder; the folder itself must not shadow what a library imports (coverage.py, coverage)."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{name}.py must lie beside {__file__}, got nothing there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------ votes -> the share of each class


def _trueup(model: str) -> Callable[[Any], np.ndarray]:
    def answer(votes: Any) -> np.ndarray:
        import trueup as tu

        columns = {"item": votes.item, "labeler": votes.labeler, "label": votes.label}
        labels = tu.Labels.from_frame(columns, classes=list(range(votes.n_classes)), duplicates="keep")
        shares = np.full((votes.n_items, votes.n_classes), 1.0 / votes.n_classes)
        shares[labels.items.astype(int)] = tu.noise.fit(labels, model).posterior(labels)
        return shares

    return answer


def _named(peer: str) -> Callable[[Any], np.ndarray]:
    """A peer of `benchmarks.aggregation`."""

    def answer(votes: Any) -> np.ndarray:
        np.random.seed(0)  # noqa: NPY002  (cleanlab breaks the last ties with the global generator)
        return beside("_aggregation_peers").PEERS[peer][0](votes, 0)

    return answer


def _snorkel(votes: Any) -> np.ndarray:
    """The label model, whose labeling functions are the labelers; an abstention is -1."""
    from snorkel.labeling.model import LabelModel  # type: ignore[import-not-found]

    matrix = np.nan_to_num(votes.matrix(), nan=-1).astype(int)
    model = LabelModel(cardinality=votes.n_classes, verbose=False)
    model.fit(matrix, seed=0, progress_bar=False)
    return np.asarray(model.predict_proba(matrix))


def _activeml(votes: Any) -> np.ndarray:
    """Its vote of annotators; a missing label is nan."""
    from skactiveml.utils import majority_vote  # type: ignore[import-not-found]

    labels = majority_vote(votes.matrix(), classes=list(range(votes.n_classes)), missing_label=np.nan, random_state=0)
    return np.eye(votes.n_classes)[np.asarray(labels, dtype=int)]


LABEL_TASKS: dict[str, tuple[str, Callable[[Any], np.ndarray]]] = {
    "trueup auto": ("trueup", _trueup("auto")),
    "trueup Dawid–Skene": ("trueup", _trueup("dawid-skene")),
    "trueup majority": ("trueup", _trueup("majority")),
    "crowd-kit DawidSkene": ("crowd-kit", _named("crowd-kit DawidSkene")),
    "crowd-kit GLAD": ("crowd-kit", _named("crowd-kit GLAD")),
    "crowd-kit MACE": ("crowd-kit", _named("crowd-kit MACE")),
    "crowd-kit MajorityVote": ("crowd-kit", _named("crowd-kit MajorityVote")),
    "cleanlab consensus": ("cleanlab", _named("cleanlab consensus (other votes)")),
    "snorkel LabelModel": ("snorkel", _snorkel),
    "scikit-activeml vote": ("scikit-activeml", _activeml),
}


# ------------------------------------------------- a judge on all items and truths of some -> an interval of the rate


def _trueup_share(sample: Sample) -> tuple[float, float]:
    import trueup as tu

    labels = tu.Labels.from_matrix(sample["judge"][:, None], classes=[0, 1])
    gold = dict(zip(sample["at"].tolist(), sample["truth"].tolist(), strict=True))
    answer = tu.share(labels.with_gold(gold, drawn="random"), of=1, target="population", random_state=0)
    low, high = answer.evaluation[answer.name].interval(LEVEL)
    return float(low), float(high)


def _truescore(method: str) -> Callable[[Sample], tuple[float, float]]:
    def answer(sample: Sample) -> tuple[float, float]:
        import truescore  # type: ignore[import-not-found]

        told = getattr(truescore, method)(sample["judge"], sample["truth"], sample["at"], alpha=1 - LEVEL)
        return float(told.low), float(told.high)

    return answer


def _ppi_python(sample: Sample) -> tuple[float, float]:
    from ppi_py import ppi_mean_ci  # type: ignore[import-not-found]

    judge, at = sample["judge"].astype(float), sample["at"]
    told = ppi_mean_ci(sample["truth"].astype(float), judge[at], np.delete(judge, at), alpha=1 - LEVEL)
    low, high = np.ravel(told)
    return float(low), float(high)


def _wilson(sample: Sample) -> tuple[float, float]:
    from scipy.stats import binomtest

    told = binomtest(int(sample["truth"].sum()), len(sample["truth"])).proportion_ci(LEVEL, method="wilson")
    return float(told.low), float(told.high)


INTERVAL_TASKS: dict[str, tuple[str, Callable[[Sample], tuple[float, float]]]] = {
    "trueup share": ("trueup", _trueup_share),
    "ppi-python": ("ppi-python", _ppi_python),
    "truescore ppi": ("truescore", _truescore("ppi_estimate")),
    "truescore rogan-gladen": ("truescore", _truescore("rogan_gladen_estimate")),
    "Wilson, vetted items only": ("scipy", _wilson),
}
PACKAGES = tuple(dict.fromkeys(package for package, _ in (*LABEL_TASKS.values(), *INTERVAL_TASKS.values())))


def main(task: str, folder: str) -> None:
    """Answer every file of the folder; the first once more before the clock runs, for lazy imports and compiling."""
    warnings.simplefilter("ignore")  # what they warn of says nothing about their answers
    files = sorted(Path(folder).glob("*.npz"), key=lambda path: int(path.stem))
    package, answer = (LABEL_TASKS | INTERVAL_TASKS)[task]
    inputs = []
    for file in files:
        with np.load(file) as stored:
            arrays = dict(stored.items())
        is_votes = task in LABEL_TASKS
        inputs.append(beside("_aggregation_peers").Votes(**_votes(arrays)) if is_votes else arrays)
    answer(inputs[0])
    started = time.perf_counter()
    for file, thing in zip(files, inputs, strict=True):
        np.save(file.with_suffix(".npy"), answer(thing))
    seconds = time.perf_counter() - started
    peak = beside("_peers").peak_bytes()
    print(json.dumps({"seconds": seconds, "peak": peak, "version": _version(package)}))


def _version(package: str) -> str:
    """Of the sources for trueup, which an editable installation may be behind."""
    return str(sys.modules["trueup"].__version__) if package == "trueup" else importlib.metadata.version(package)


def _votes(arrays: Sample) -> dict[str, Any]:
    return {**{name: arrays[name] for name in ("item", "labeler", "label")}, "shape": tuple(arrays["shape"].tolist())}


if __name__ == "__main__":
    main(*sys.argv[1:])
