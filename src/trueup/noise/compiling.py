"""Compile the chains that the plain answers draw, two at once: one after the other takes almost twice as long.

Compiled code is kept on the disk, so that this is worth it once for each version that is installed. Run as a program,
this module compiles the chains of one model.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from trueup._base.engines import n_cores
from trueup._base.optional import is_installed
from trueup.data.labels import Labels
from trueup.noise import DawidSkene, NoiseModel, SharedDifficulty
from trueup.noise.kernels import engine_for_chains
from trueup.noise.sampling import sample
from trueup.noise.system_outputs import SystemOutputs

__all__ = ["are_chains_compiled", "compile_chains"]

_MODELS: dict[str, NoiseModel] = {"dawid-skene": DawidSkene(), "shared-difficulty": SharedDifficulty()}


def are_chains_compiled() -> bool:
    """Whether nothing is left to do: compiled code is on the disk, or none is used."""
    if not is_installed("numba") or engine_for_chains() != "numba":
        return True
    from trueup.noise.kernels import compiled_difficulty, compiled_gibbs

    for module in (compiled_difficulty, compiled_gibbs):
        folder = Path(module.run_chain.stats.cache_path)
        if not any(folder.glob(f"{module.__name__.rpartition('.')[2]}.run_chain-*.nbi")):
            return False
    return True


def compile_chains() -> None:
    """Compile the chains of the usual models, one of them here and the other in a process of its own."""
    here, *others = _MODELS
    if n_cores() < 2:
        others = []  # the first call of each compiles it
    commands = [[sys.executable, "-P", "-m", __name__, name] for name in others]  # nothing of the folder at hand
    helpers = [subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for line in commands]
    _compile(here)
    for helper in helpers:
        helper.wait()  # one that fails leaves its work to the first call


def _compile(name: str) -> None:
    """Draw a chain from little data."""
    votes = np.arange(30).reshape(10, 3) // 4 % 2
    sample(
        Labels.from_matrix(votes),
        _MODELS[name],
        outputs=SystemOutputs.of_classes(votes.T[:1], 2, np.ones(1)),
        one_witness=True,
        n_chains=1,
        n_warmup=1,
        n_draws=4,
        random_state=0,
        warn=False,
    )


if __name__ == "__main__":
    _compile(sys.argv[1])
