"""One library's answers for `benchmarks.peers.ask`, in a process of its own so that its memory can be told.

``python -P _peer_tasks.py TASK FOLDER``, run by the interpreter that has the library: the one that TRUEUP_PEERS names,
or the project's own for trueup. The folder holds ``<number>.npz`` files, such as the votes of a set or samples of
vetted items; the answers are written as ``<number>.npy``. Prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LEVEL = 0.95
Sample = dict[str, np.ndarray]


class Votes:
    """The votes in the forms that other libraries take."""

    def __init__(self, arrays: Sample) -> None:
        self.item, self.labeler, self.label = (arrays[name] for name in ("item", "labeler", "label"))
        self.n_items, self.n_labelers, self.n_classes = arrays["shape"].tolist()

    def frame(self) -> Any:
        """One row a vote, for crowd-kit."""
        import pandas as pd

        return pd.DataFrame({"task": self.item, "worker": self.labeler, "label": self.label})

    def matrix(self) -> np.ndarray:
        """Items × labelers, for cleanlab and others; of repeated votes of a labeler on an item the last stays."""
        matrix = np.full((self.n_items, self.n_labelers), np.nan)
        matrix[self.item, self.labeler] = self.label
        return matrix[:, ~np.isnan(matrix).all(axis=0)]


def peak_bytes() -> int:
    """The most memory this process has had."""
    status = Path("/proc/self/status")
    if status.exists():  # `getrusage` also counts the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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


def _crowdkit(name: str, **settings: Any) -> Callable[[Votes], np.ndarray]:
    def answer(votes: Votes) -> np.ndarray:
        from crowdkit import aggregation  # type: ignore[import-not-found]

        probabilities = getattr(aggregation, name)(**settings).fit(votes.frame()).probas_
        return probabilities.reindex(
            index=range(votes.n_items), columns=range(votes.n_classes), fill_value=0.0
        ).to_numpy()

    return answer


def _cleanlab(votes: Votes) -> np.ndarray:
    """CROWDLAB, cleanlab's consensus.

    It wants class probabilities of a classifier, but here are no features: these are smoothed shares of the votes on
    the same item without one of them, averaged over the one left out.
    """
    from cleanlab.multiannotator import get_label_quality_multiannotator  # type: ignore[import-not-found]

    np.random.seed(0)  # noqa: NPY002  (cleanlab breaks the last ties with the global generator)
    counts = np.zeros((votes.n_items, votes.n_classes))
    np.add.at(counts, (votes.item, votes.label), 1)
    n = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    left = counts * (n - 1) / n + 0.5
    quiet = {"return_detailed_quality": False, "return_annotator_stats": False, "verbose": False}
    found = get_label_quality_multiannotator(votes.matrix(), left / left.sum(axis=1, keepdims=True), **quiet)
    return np.eye(votes.n_classes)[found["label_quality"]["consensus_label"].to_numpy().astype(int)]


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
    "crowd-kit DawidSkene": ("crowd-kit", _crowdkit("DawidSkene")),
    "crowd-kit GLAD": ("crowd-kit", _crowdkit("GLAD")),
    "crowd-kit MACE": ("crowd-kit", _crowdkit("MACE", random_state=0)),
    "crowd-kit MajorityVote": ("crowd-kit", _crowdkit("MajorityVote")),
    "cleanlab consensus": ("cleanlab", _cleanlab),
    "snorkel LabelModel": ("snorkel", _snorkel),
    "scikit-activeml vote": ("scikit-activeml", _activeml),
}
TWENTY = "crowd-kit DawidSkene, 20 iterations"  # without an early stop, for times
TIMED_TASKS = {TWENTY: ("crowd-kit", _crowdkit("DawidSkene", n_iter=20, tol=-np.inf))}


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


# ------------------------------------------------ features and votes -> the classes of test items, a row for each run

EPOCHS, BATCH, SEEDS = 50, 64, 3
WIDE = 2000  # features


def _features(sample: Sample, part: str) -> Any:
    """Dense, but for features of which most are 0."""
    from scipy import sparse

    data, indices, indptr, shape = (sample[f"{part} {name}"] for name in ("data", "indices", "indptr", "shape"))
    X = sparse.csr_matrix((data, indices, indptr), shape=tuple(shape))
    return X.toarray() if sample["train data"].size > 0.3 * np.prod(sample["train shape"]) else X


def _clean_learning(sample: Sample) -> np.ndarray:
    """CleanLearning around logistic regression, on majority votes, with the C that majority training chose."""
    from cleanlab.classification import CleanLearning  # type: ignore[import-not-found]
    from sklearn.linear_model import LogisticRegression

    found = []
    for codes in sample["majority"]:
        model = CleanLearning(LogisticRegression(C=float(sample["C"]), max_iter=1000), seed=0)
        found.append(model.fit(_features(sample, "train"), codes).predict(_features(sample, "test")))
    return np.array(found)


def _crowd_layer(hidden: int) -> Callable[[Sample], np.ndarray]:
    """CrowdLayer (mw) on a network of our choice: linear as all others, or 128 hidden units as its authors took."""

    def answer(sample: Sample) -> np.ndarray:
        import torch
        from crowdkit.learning import CrowdLayer  # type: ignore[import-not-found]
        from torch import nn

        torch.set_num_threads(1)
        train, test = (
            torch.as_tensor(X.toarray() if hasattr(X, "toarray") else X, dtype=torch.float32)
            for X in (_features(sample, "train"), _features(sample, "test"))
        )
        _, n_labelers, n_classes = sample["shape"].tolist()
        item, labeler, label = (torch.as_tensor(sample[name].astype(np.int64)) for name in ("item", "labeler", "label"))
        quick, found = bool(sample["quick"]), []
        for seed in range(1 if quick or train.shape[1] > WIDE else SEEDS):
            torch.manual_seed(seed)
            below = [nn.Linear(train.shape[1], hidden), nn.ReLU(), nn.Dropout(0.5)] if hidden else []
            network = nn.Sequential(*below, nn.Linear(hidden or train.shape[1], n_classes), nn.Softmax(dim=1))
            crowd = CrowdLayer(n_classes, n_labelers)
            optimizer = torch.optim.Adam([*network.parameters(), *crowd.parameters()])
            network.train()
            for _ in range(5 if quick else EPOCHS):
                for rows in torch.randperm(len(item)).split(BATCH):
                    if len(rows) < 2:  # the layer drops the only row's axis
                        continue
                    scores = crowd(network(train[item[rows]]), labeler[rows])
                    loss = nn.functional.cross_entropy(scores, label[rows])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            network.eval()
            with torch.no_grad():
                found.append(network(test).argmax(dim=1).numpy())
        return np.array(found)

    return answer


TRAINING_TASKS: dict[str, tuple[str, Callable[[Sample], np.ndarray]]] = {
    "cleanlab CleanLearning (majority)": ("cleanlab", _clean_learning),
    "crowd-kit CrowdLayer, linear": ("crowd-kit", _crowd_layer(0)),
    "crowd-kit CrowdLayer, 128 hidden": ("crowd-kit", _crowd_layer(128)),
}


# ------------------------------------------ truth and detections as JSON -> the least seconds of an evaluation, and AP


def _average_precision(objects_of: str, judge_of: str) -> Callable[[Sample], np.ndarray]:
    def answer(sample: Sample) -> np.ndarray:
        os.environ["RAYON_NUM_THREADS"] = "1"
        read, judge = importlib.import_module(objects_of).COCO, importlib.import_module(judge_of).COCOeval
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            files = [Path(folder) / f"{name}.json" for name in ("truth", "results")]
            for file in files:
                file.write_bytes(sample[file.stem].tobytes())
            objects = read(str(files[0]))
            found, seconds = objects.loadRes(str(files[1])), []
            for _ in range(int(sample["turns"])):
                evaluation = judge(objects, found, "bbox")
                started = time.process_time()  # other work on the machine does not count
                evaluation.evaluate()
                evaluation.accumulate()
                seconds.append(time.process_time() - started)
            evaluation.summarize()
        return np.array([min(seconds), evaluation.stats[0]])

    return answer


DETECTION_TASKS: dict[str, tuple[str, Callable[[Sample], np.ndarray]]] = {
    "hotcoco": ("hotcoco", _average_precision("hotcoco", "hotcoco")),
    "pycocotools": ("pycocotools", _average_precision("pycocotools.coco", "pycocotools.cocoeval")),
}


def main(task: str, folder: str) -> None:
    """Answer every file of the folder; times are without what lazy imports and compiling take, but for long tasks."""
    warnings.simplefilter("ignore")  # what they warn of says nothing about their answers
    files = sorted(Path(folder).glob("*.npz"), key=lambda path: int(path.stem))
    tasks: dict[str, Any] = LABEL_TASKS | INTERVAL_TASKS | TIMED_TASKS | TRAINING_TASKS | DETECTION_TASKS
    package, answer = tasks[task]
    inputs = []
    for file in files:
        with np.load(file) as stored:
            arrays = dict(stored.items())
        inputs.append(Votes(arrays) if task in LABEL_TASKS | TIMED_TASKS else arrays)
    if task not in TRAINING_TASKS | DETECTION_TASKS:
        answer(inputs[0])
    started = time.perf_counter()
    for file, thing in zip(files, inputs, strict=True):
        np.save(file.with_suffix(".npy"), answer(thing))
    seconds = time.perf_counter() - started
    # Of the sources for trueup, which an editable installation may be behind.
    version = sys.modules["trueup"].__version__ if package == "trueup" else importlib.metadata.version(package)
    print(json.dumps({"seconds": seconds, "peak": peak_bytes(), "version": version}))


if __name__ == "__main__":
    main(*sys.argv[1:])
