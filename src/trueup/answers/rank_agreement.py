"""How far two rankings of the same things agree, draw by draw."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from trueup._base.types import Floats

RankCorrelation = Literal["kendall", "spearman"]


def rank_correlations(a: Floats, b: Floats, kind: RankCorrelation) -> Floats:
    """Kendall's τ-b or Spearman's ρ of each row of a with that of b; nan where all of a row are equal."""
    x, y = (_pair_signs(a), _pair_signs(b)) if kind == "kendall" else (_centred_ranks(a), _centred_ranks(b))
    norm = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.asarray(np.divide((x * y).sum(axis=1), norm, out=np.full(len(x), np.nan), where=norm > 0))


def _pair_signs(values: Floats) -> Floats:
    first, second = np.triu_indices(values.shape[1], k=1)
    return np.asarray(np.sign(values[:, first] - values[:, second]))


def _centred_ranks(values: Floats) -> Floats:
    ranks = scipy.stats.rankdata(values, axis=1)
    return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))
