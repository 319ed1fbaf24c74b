"""Do labelers agree, and judges with experts? Read `tables` first, then `sums` and `agreement`."""

from trueup.reliability.agreement import Agreement, DisputedItem, PairAgreement, agreement
from trueup.reliability.experts import JudgeAgreement, Judges
from trueup.reliability.tables import CoefficientEstimate

__all__ = ["Agreement", "CoefficientEstimate", "DisputedItem", "JudgeAgreement", "Judges", "PairAgreement", "agreement"]
