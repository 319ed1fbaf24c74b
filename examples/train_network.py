"""Train a small network on the votes of a real crowd.

LabelMe: 1000 images of 8 kinds of scenes, each labelled by two or three of 59 people, who are right about three times
in four. Features are those of a VGG-16 network; 1188 other images with known classes are for testing. The same network
is trained on majority votes, on the votes themselves, and on the truth, which no one would have.

    python examples/train_network.py [--epochs 30] [--device cuda] [--seeds 5]

The data are open and no part of trueup. They are looked for in the folder named by TRUEUP_DATA.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import trueup as tu
from trueup.training.torch import CrowdLayer, MMSELoss, NoisyLikelihoodLoss, VoteDataset


def read(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and true classes of a part of the data."""
    table = pq.read_table(folder / f"features_{part}.parquet")
    names = [name for name in table.schema.names if name.startswith("f")]
    X = np.column_stack([table[name].to_numpy() for name in names]).astype(np.float32)
    return X, table["truth"].to_numpy()


def network(n_features: int, n_classes: int) -> nn.Module:
    """One hidden layer with dropout, as in Rodrigues and Pereira, "Deep learning from crowds" (2018)."""
    return nn.Sequential(nn.Linear(n_features, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, n_classes))


def majority_vote(labels: tu.Labels, rng: np.random.Generator) -> np.ndarray:
    """The class most voted for on each item; ties, of which two or three votes leave many, are broken at random."""
    counts = labels.answer_counts[:, : labels.n_classes]
    return (counts + rng.random(counts.shape)).argmax(axis=1)


def train(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[Any, Any], torch.Tensor],
    *,
    parameters: Iterable[Any] = (),
    epochs: int,
    device: str,
) -> nn.Module:
    """A plain training loop; nothing in it knows of noise but the loss."""
    model.to(device).train()
    optimiser = torch.optim.Adam([*model.parameters(), *parameters], lr=1e-3)
    for _ in range(epochs):
        for x, target in batches:
            optimiser.zero_grad()
            loss(model(x.to(device)), target.to(device)).backward()
            optimiser.step()
    return model.eval()


def accuracies(folder: Path, *, epochs: int, device: str, seed: int) -> dict[str, float]:
    """Accuracy on the test images by what the network was trained on."""
    labels = tu.read_labels(folder / "labels.csv.gz")
    X, truth = read(folder, "train")
    X_test, truth_test = read(folder, "test")
    X = X[labels.items.astype(int)]  # items are rows of the table
    truth = truth[labels.items.astype(int)]
    center, spread = X.mean(axis=0), X.std(axis=0) + 1e-6
    X, X_test = (X - center) / spread, torch.tensor((X_test - center) / spread, device=device)

    noise = tu.noise.DawidSkene().fit(labels)
    votes = VoteDataset(X, labels)
    mmse, likelihood = MMSELoss(noise).to(device), NoisyLikelihoodLoss(noise).to(device)
    crowd = CrowdLayer(votes.n_labelers, votes.n_classes, init=noise).to(device)
    single = CrowdLayer(votes.n_labelers, votes.n_classes, init=noise).to(device)
    wide = CrowdLayer(votes.n_labelers, votes.n_classes, init=noise, volume_weight=0.5).to(device)
    cross_entropy = nn.CrossEntropyLoss()
    majority = majority_vote(labels, np.random.default_rng(seed))
    code = {name: k for k, name in enumerate(labels.classes.tolist())}
    true = np.array([code[name] for name in truth.tolist()])

    def hard(classes: np.ndarray) -> Iterable[Any]:
        """Batches of items with one class each, as for any network."""
        data = TensorDataset(torch.tensor(X), torch.tensor(classes))
        return DataLoader(data, 64, shuffle=True, generator=torch.Generator().manual_seed(seed))

    def batches() -> Iterable[Any]:
        """Batches of items with their votes, in the order that each way sees."""
        return votes.loader(64, generator=torch.Generator().manual_seed(seed))

    ways: dict[str, tuple[Iterable[Any], Callable[[Any, Any], torch.Tensor], Any]] = {
        "CrossEntropyLoss, majority": (hard(majority), cross_entropy, ()),
        "MMSELoss": (batches(), mmse, ()),
        "NoisyLikelihoodLoss": (batches(), likelihood, ()),
        "CrowdLayer": (batches(), single.loss, single.parameters()),
        "CrowdLayer, joint": (batches(), lambda f, z: crowd.loss(f, z, joint=True), crowd.parameters()),
        "CrowdLayer, joint, volume": (batches(), lambda f, z: wide.loss(f, z, joint=True), wide.parameters()),
        "CrossEntropyLoss, truth": (hard(true), cross_entropy, ()),
    }
    goal = np.array([code[name] for name in truth_test.tolist()])
    found = {}
    for name, (items, loss, parameters) in ways.items():
        with torch.random.fork_rng():  # the same start for all
            torch.manual_seed(seed)
            model = network(X.shape[1], labels.n_classes)
            train(model, items, loss, parameters=parameters, epochs=epochs, device=device)
        with torch.no_grad():
            found[name] = float((model(X_test).argmax(dim=1).cpu().numpy() == goal).mean())
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Train a small network on the votes of a real crowd.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=5, help="networks trained for each line")
    options = parser.parse_args()
    name = os.environ.get("TRUEUP_DATA")
    if not name:
        sys.exit("the data folder must be named, got nothing; name it in TRUEUP_DATA")
    folder = Path(name) / "crowd-labelme-feat"
    if not folder.is_dir():
        sys.exit(f"the data folder must hold crowd-labelme-feat, got {name!r}; name another in TRUEUP_DATA")
    runs = [accuracies(folder, epochs=options.epochs, device=options.device, seed=s) for s in range(options.seeds)]
    print(f"accuracy on 1188 test images, {options.epochs} epochs, mean of {options.seeds} networks")
    for name in runs[0]:
        values = [run[name] for run in runs]
        spread = f" ± {statistics.stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
        print(f"{name:28} {statistics.mean(values):.3f}{spread}")


if __name__ == "__main__":
    main()
