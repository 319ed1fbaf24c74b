"""Trains with cleanlab and crowd-kit; run by `benchmarks.training` in an interpreter which need not have trueup.

Usage: python _training_peers.py FOLDER, with ``train.npz`` and ``test.npz`` (features), ``votes.npz``, ``majority.npy``
(their majority, once for each way to break ties) and ``settings.json``. Writes ``predictions.json``: the test items'
classes of each peer, one list for each run. CleanLearning has the C that majority training chose. CrowdLayer is a
layer, so what lies below it and how long it is trained are choices of ours: a linear one, as all others here have, and
128 hidden units with dropout, as its authors took for LabelMe (left out for wide features); Adam, batches of 64, 50
epochs, three seeds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

EPOCHS, BATCH, SEEDS, WIDE = 50, 64, 3, 2000


def clean_learning(X: Any, X_test: Any, votes: Any, C: float, quick: bool) -> list[list[int]]:
    """CleanLearning around logistic regression, on majority votes."""
    from cleanlab.classification import CleanLearning  # type: ignore[import-not-found]
    from sklearn.linear_model import LogisticRegression

    told = []
    for codes in votes["majority"]:
        model = CleanLearning(LogisticRegression(C=C, max_iter=1000), seed=0)
        told.append(model.fit(X, codes).predict(X_test).tolist())
    return told


def crowd_layer(hidden: int) -> Any:
    """CrowdLayer (mw) on a network."""

    def run(X: Any, X_test: Any, votes: Any, C: float, quick: bool) -> list[list[int]]:
        import torch
        from crowdkit.learning import CrowdLayer  # type: ignore[import-not-found]
        from torch import nn

        torch.set_num_threads(1)
        _, n_labelers, n_classes = votes["shape"].tolist()
        item, labeler, label = (torch.as_tensor(votes[name].astype(np.int64)) for name in ("item", "labeler", "label"))
        told = []
        for seed in range(1 if quick or X.shape[1] > WIDE else SEEDS):
            torch.manual_seed(seed)
            below = [nn.Linear(X.shape[1], hidden), nn.ReLU(), nn.Dropout(0.5)] if hidden else []
            network = nn.Sequential(*below, nn.Linear(hidden or X.shape[1], n_classes), nn.Softmax(dim=1))
            crowd = CrowdLayer(n_classes, n_labelers)
            optimizer = torch.optim.Adam([*network.parameters(), *crowd.parameters()])
            dense = torch.as_tensor(X.toarray() if sparse.issparse(X) else X, dtype=torch.float32)
            for _ in range(5 if quick else EPOCHS):
                network.train()
                for rows in torch.randperm(len(item)).split(BATCH):
                    if len(rows) < 2:  # the layer drops the only row's axis
                        continue
                    scores = crowd(network(dense[item[rows]]), labeler[rows])
                    loss = nn.functional.cross_entropy(scores, label[rows])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            network.eval()
            with torch.no_grad():
                test = torch.as_tensor(X_test.toarray() if sparse.issparse(X_test) else X_test, dtype=torch.float32)
                told.append(network(test).argmax(dim=1).tolist())
        return told

    return run


PEERS = {
    "cleanlab CleanLearning (majority)": clean_learning,
    "crowd-kit CrowdLayer, linear": crowd_layer(0),
    "crowd-kit CrowdLayer, 128 hidden": crowd_layer(128),
}


def main(name: str) -> None:
    folder = Path(name)
    X, X_test = (sparse.load_npz(folder / f"{part}.npz") for part in ("train", "test"))
    if X.nnz > 0.3 * np.prod(X.shape):
        X, X_test = X.toarray(), X_test.toarray()
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    with np.load(folder / "votes.npz") as stored:
        votes = {**stored, "majority": np.load(folder / "majority.npy")}
        told = {
            peer: run(X, X_test, votes, settings["C"], settings["quick"])
            for peer, run in PEERS.items()
            if "hidden" not in peer or X.shape[1] <= WIDE
        }
    (folder / "predictions.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
