"""M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical Classification".

PVLDB 12(4), 2018; the system is called TARS. `consolidation` has the label of several votes and its matrix (Section 3),
`unbiased` the counts that invert it (Section 4, advice 1), `noise_removal` the paper's baselines.
"""
