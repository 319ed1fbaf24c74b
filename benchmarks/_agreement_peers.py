"""Coefficients of agreement by other packages: reads tables of votes as JSON, writes what each package says of them.

Runs in an environment of its own that has krippendorff, pingouin, statsmodels and irrCAC, and not trueup.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np


def _irrcac(table: Any, classes: list[int]) -> dict[str, float]:
    import pandas as pd
    from irrCAC.raw import CAC

    frame = pd.DataFrame(table)
    plain = CAC(frame, categories=classes, digits=14)
    methods = {"fleiss": "fleiss", "conger": "conger", "ac1": "gwet", "brennan_prediger": "bp", "alpha": "krippendorff"}
    found = {f"irrCAC {name}": getattr(plain, method)() for name, method in methods.items()}
    for weights, scale in (("ordinal", "ordinal"), ("quadratic", "interval"), ("ratio", "ratio")):
        found[f"irrCAC ac2 {scale}"] = CAC(frame, weights=weights, categories=classes, digits=14).gwet()
    values = {name: one["est"]["coefficient_value"] for name, one in found.items()}
    return values | {"irrCAC percent": found["irrCAC fleiss"]["est"]["pa"]}


def _complete(table: Any, classes: list[int]) -> dict[str, float]:
    import pandas as pd
    import pingouin
    from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

    codes = np.asarray(table, dtype=int)
    n, m = codes.shape
    pairs = [(a, b) for a in range(m) for b in range(a)]
    found: dict[str, float] = {}
    for name, wt in (("cohen", None), ("cohen_weighted linear", "linear"), ("cohen_weighted quadratic", "quadratic")):
        each = []
        for a, b in pairs:
            square = np.zeros((len(classes), len(classes)))
            np.add.at(square, (codes[:, a] - classes[0], codes[:, b] - classes[0]), 1)
            each.append(cohens_kappa(square, wt=wt, return_results=False))
        found[f"statsmodels {name}"] = float(np.mean(each))
    counts = np.stack([(codes == k).sum(axis=1) for k in classes], axis=1)
    found["statsmodels fleiss"] = float(fleiss_kappa(counts))
    item, labeler = np.divmod(np.arange(n * m), m)
    long = pd.DataFrame({"i": item, "j": labeler, "y": codes.ravel().astype(float)})
    icc = pingouin.intraclass_corr(data=long, targets="i", raters="j", ratings="y").set_index("Type")["ICC"]
    names = ("icc1", "icc_a1", "icc_c1", "icc1k", "icc_ak", "icc_ck")
    kinds = ("ICC1", "ICC2", "ICC3", "ICC1k", "ICC2k", "ICC3k")
    if "ICC1" not in icc.index:
        kinds = ("ICC(1,1)", "ICC(A,1)", "ICC(C,1)", "ICC(1,k)", "ICC(A,k)", "ICC(C,k)")
    return found | {f"pingouin {name}": float(icc[kind]) for name, kind in zip(names, kinds, strict=True)}


def main() -> None:
    import krippendorff

    warnings.simplefilter("ignore")
    answers = []
    for case in json.load(sys.stdin):
        classes = case["classes"]
        table = np.array([[np.nan if v is None else v for v in row] for row in case["table"]], dtype=float)
        found = _irrcac(table, classes)
        for scale in ("nominal", "ordinal", "interval", "ratio"):
            alpha = krippendorff.alpha(reliability_data=table.T, level_of_measurement=scale, value_domain=classes)
            found[f"krippendorff alpha {scale}"] = float(alpha)
        if not np.isnan(table).any():
            found |= _complete(table, classes)
        answers.append(found)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
