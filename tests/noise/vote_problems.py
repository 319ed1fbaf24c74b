"""Random votes with tables of answers, of every shape that kernels must know; for tests of all engines."""

import numpy as np
from scipy import sparse
from scipy.special import gammaln

CLASSES = (2, 3, 10)


def make_problem(
    *,
    n_items=60,
    n_labelers=7,
    n_classes=3,
    n_subtypes=1,
    votes_per_item=4,
    repeated=False,
    shared=False,
    n_gold=0,
    seed=0,
):
    """A random vote matrix, table and weights; the last two items have no votes."""
    rng = np.random.default_rng(seed)
    n_votes = (n_items - 2) * votes_per_item
    item = np.repeat(np.arange(n_items - 2), votes_per_item)
    if repeated:
        labeler = rng.integers(n_labelers, size=n_votes)
    else:
        labeler = rng.random((n_items - 2, n_labelers)).argsort(axis=1)[:, :votes_per_item].ravel()
    column = labeler * n_classes + rng.integers(n_classes, size=n_votes)
    votes = sparse.csr_array(
        sparse.coo_array((np.ones(n_votes), (item, column)), shape=(n_items, n_labelers * n_classes))
    )
    votes.sum_duplicates()
    if shared:  # several votes of a labeler on an item share one
        votes.data /= 3
    n_states = n_classes * n_subtypes
    table = rng.dirichlet(np.full(n_classes, 0.5), size=(n_labelers, n_states)).transpose(0, 2, 1)
    gold = np.full(n_items, -1, dtype=np.int32)
    gold[rng.choice(n_items, n_gold, replace=False)] = rng.integers(n_classes, size=n_gold)
    return {
        "votes": votes,
        "table": np.ascontiguousarray(table).reshape(-1, n_states),
        "weights": rng.dirichlet(np.ones(n_states)),
        "gold": gold,
        "state_class": np.repeat(np.arange(n_classes, dtype=np.int32), n_subtypes),
    }


PROBLEMS = {
    "plain": {},
    "gold": {"n_gold": 20},
    "repeated": {"repeated": True, "n_labelers": 3, "votes_per_item": 9},
    "repeated and gold": {"repeated": True, "n_labelers": 3, "votes_per_item": 9, "n_gold": 20},
    "repeated, of a labeler one": {
        "repeated": True,
        "shared": True,
        "n_labelers": 3,
        "votes_per_item": 9,
        "n_gold": 20,
    },
    "repeated, of a labeler one, many votes": {"shared": True, "n_labelers": 250, "votes_per_item": 200},
    "many votes": {"n_labelers": 250, "votes_per_item": 200, "n_gold": 5},
    "many repeated votes": {"n_labelers": 2, "votes_per_item": 200, "repeated": True, "n_gold": 5},
    "exactly sixteen votes": {"n_labelers": 16, "votes_per_item": 16},
    "seventeen votes": {"n_labelers": 17, "votes_per_item": 17},
    "subtypes": {"n_subtypes": 2, "n_gold": 10},
    "subtypes, wider than a vector": {"n_subtypes": 6, "n_gold": 10},
}


def log_dirichlet_multinomial(counts, base):
    """Log of the Dirichlet integral of a row with counts that need not be whole."""
    counts, base = np.asarray(counts, dtype=float), np.asarray(base, dtype=float)
    return float(
        gammaln(base.sum()) - gammaln(base.sum() + counts.sum()) + (gammaln(base + counts) - gammaln(base)).sum()
    )
