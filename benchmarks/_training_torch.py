"""What the losses of `trueup.training.torch` add to a training step of a small network.

Every step with a loss of trueup is timed in
turn with a step of the same network with ``CrossEntropyLoss`` on hard labels; the ratio of the two is what counts, and
the table has its median. On a GPU, where such a step is all waiting for kernels to be launched, also with bfloat16
autocast and compiled (network and loss together, for both).
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from trueup.training.torch import CrowdLayer, MMSELoss, NoiseLayer, NoisyLikelihoodLoss, ProxyLoss, Votes

N_CLASSES, BATCH, N_FEATURES = 8, 256, 512
CROWDS = {"10 labelers, 5 votes": (10, 5.0), "59 labelers, 2.5 votes": (59, 2.5)}
Step = Callable[[], None]


class Task:
    """A batch of items with their classes, votes and evidence, on a device."""

    def __init__(self, n_labelers: int, votes_per_item: float, device: str) -> None:
        rng = np.random.default_rng(0)
        self.n_labelers = n_labelers
        matrices = np.full((n_labelers, N_CLASSES, N_CLASSES), 0.3 / (N_CLASSES - 1))
        matrices[:, range(N_CLASSES), range(N_CLASSES)] = 0.7
        self.matrices = matrices
        truth = rng.integers(N_CLASSES, size=BATCH)
        wrong = rng.random((BATCH, n_labelers)) < 0.3
        votes = np.where(wrong, rng.integers(N_CLASSES, size=wrong.shape), truth[:, None])
        votes[rng.random(votes.shape) > votes_per_item / n_labelers] = -1
        said = np.log(np.append(matrices, np.ones((n_labelers, N_CLASSES, 1)), axis=2))
        evidence = said[np.arange(n_labelers), :, votes].sum(axis=1)
        self.x = torch.tensor(rng.normal(size=(BATCH, N_FEATURES)), dtype=torch.float32, device=device)
        self.truth = torch.tensor(truth, device=device)
        self.votes = Votes.from_matrix(torch.tensor(votes)).to(device)
        self.evidence = torch.tensor(evidence, dtype=torch.float32, device=device)
        self.device = device

    def losses(self) -> dict[str, tuple[Callable[[Any], Any], list[Any]]]:
        """Each loss of the logits, and its own parameters."""
        prior = np.arange(1, N_CLASSES + 1) / (N_CLASSES * (N_CLASSES + 1) / 2)
        mmse = MMSELoss(self.matrices, prior=prior).to(self.device)
        likelihood, proxy = (kind(self.matrices).to(self.device) for kind in (NoisyLikelihoodLoss, ProxyLoss))
        crowd, plain = (
            CrowdLayer(self.n_labelers, N_CLASSES, init=self.matrices, trace_weight=weight).to(self.device)
            for weight in (0.01, 0.0)
        )
        noise = NoiseLayer(N_CLASSES).to(self.device)
        cross_entropy = nn.CrossEntropyLoss()
        learned = list(crowd.parameters())
        return {
            "CrossEntropyLoss": (lambda f: cross_entropy(f, self.truth), []),
            "MMSELoss, votes": (lambda f: mmse(f, self.votes), []),
            "MMSELoss, evidence": (lambda f: mmse(f, self.evidence), []),
            "NoisyLikelihoodLoss, votes": (lambda f: likelihood(f, self.votes), []),
            "NoisyLikelihoodLoss, evidence": (lambda f: likelihood(f, self.evidence), []),
            "ProxyLoss, votes": (lambda f: proxy(f, self.votes), []),
            "NoiseLayer, nll_loss": (lambda f: nn.functional.nll_loss(noise(f), self.truth), list(noise.parameters())),
            "CrowdLayer": (lambda f: crowd.loss(f, self.votes), learned),
            "CrowdLayer, joint": (lambda f: crowd.loss(f, self.votes, joint=True), learned),
            "CrowdLayer, joint, no trace": (lambda f: plain.loss(f, self.votes, joint=True), list(plain.parameters())),
        }

    def step(self, name: str, *, half: bool = False, compiled: bool = False) -> Step:
        """A training step with one of the losses: forward, loss, backward, Adam."""
        loss, parameters = self.losses()[name]
        network = nn.Sequential(
            nn.Linear(N_FEATURES, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, N_CLASSES)
        ).to(self.device)
        optimiser = torch.optim.Adam([*network.parameters(), *parameters], lr=1e-4)

        def forward() -> Any:
            with torch.autocast(self.device, dtype=torch.bfloat16, enabled=half):
                return loss(network(self.x))

        value: Callable[[], Any] = torch.compile(forward) if compiled else forward

        def step() -> None:
            optimiser.zero_grad(set_to_none=True)
            value().backward()
            optimiser.step()

        return step


def _seconds(step: Step, n: int, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(n):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / n


def _kernels(step: Step) -> int:
    """How many kernels a step launches on the GPU: what it costs where nothing else is slow."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # profilers are talkative
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            step()
            torch.cuda.synchronize()
    return sum(event.count for event in seen.key_averages() if event.self_device_time_total > 0)


def _measure(task: Task, *, n_steps: int, n_turns: int, **how: bool) -> list[tuple[str, float, float, int]]:
    """Name, seconds of a step, how many times a step with cross-entropy that is, and kernels (0: not a GPU)."""
    found = []
    for name in list(task.losses())[1:]:
        if how.get("compiled"):
            torch._dynamo.reset()  # else what was compiled before is looked through at each call
        base, step = task.step("CrossEntropyLoss", **how), task.step(name, **how)
        for one in (base, step):
            _seconds(one, 30, task.device)
        turns = []
        for turn in range(n_turns):  # who goes first changes
            order = (base, step) if turn % 2 else (step, base)
            times = {id(one): _seconds(one, n_steps, task.device) for one in order}
            turns.append((times[id(step)], times[id(base)]))
        ratio = statistics.median(mine / theirs for mine, theirs in turns)
        counts = [_kernels(one) if task.device == "cuda" else 0 for one in (base, step)]
        if not found:
            found.append(("CrossEntropyLoss", statistics.median(theirs for _, theirs in turns), 1.0, counts[0]))
        found.append((name, statistics.median(mine for mine, _ in turns), ratio, counts[1]))
    return found


def torch_cost(device: str, quick: bool) -> str:
    """The table, as text."""
    gpu = device == "cuda"
    if gpu and not torch.cuda.is_available():
        return "skipped: torch finds no GPU here"
    if not gpu:
        torch.set_num_threads(1)
    n_steps, n_turns = (50 if gpu else 10), (5 if quick else 31)
    name = torch.cuda.get_device_name() if gpu else "CPU, one thread"
    lines = [
        f"{name}, torch {torch.__version__}; network {N_FEATURES}-256-128-{N_CLASSES}, batch {BATCH}, Adam; "
        f"medians of {n_turns} turns of {n_steps} steps"
    ]
    ways: dict[str, dict[str, bool]] = {"eager": {}}
    if gpu:
        ways |= {"bfloat16 autocast": {"half": True}, "compiled": {"compiled": True}}
    for crowd, sizes in CROWDS.items():
        for way, how in ways.items():
            if way == "compiled" and crowd == next(iter(CROWDS)):
                continue  # minutes for each; one crowd will do
            lines += ["", f"{crowd}, {way}", f"{'loss':32} {'ms a step':>10} {'ratio':>7}{' kernels' if gpu else ''}"]
            try:
                rows = _measure(Task(*sizes, device), n_steps=n_steps, n_turns=n_turns, **how)
            except Exception as error:  # e.g. no compiler on this machine
                lines.append(f"not measured: {type(error).__name__}: {str(error).splitlines()[0]}")
                continue
            for loss, seconds, ratio, kernels in rows:
                lines.append(f"{loss:32} {1e3 * seconds:10.3f} {ratio:7.3f}{f' {kernels:7d}' if gpu else ''}")
    return "\n".join(lines)
