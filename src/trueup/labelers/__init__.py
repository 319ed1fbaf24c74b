"""Which labelers can be trusted, how many are needed, what is a label worth?"""

from trueup.labelers.biases import Biases, LabelerBias, bias
from trueup.labelers.information import (
    Information,
    MarginalValue,
    equivalent_error,
    equivalent_labelers,
    expected_width,
    marginal_value,
    mutual_information,
    symmetric_matrix,
)
from trueup.labelers.panels import Correlations, Panel, PanelSize, Tree, panel
from trueup.labelers.planning import LabelerSet, Sample, cheapest_set, draw_contests, draw_sample
from trueup.labelers.ranking import LabelerRanking, RankedLabeler, rank
from trueup.labelers.tables import self_consistency, spam_share

__all__ = [
    "Biases",
    "Correlations",
    "Information",
    "LabelerBias",
    "LabelerRanking",
    "LabelerSet",
    "MarginalValue",
    "Panel",
    "PanelSize",
    "RankedLabeler",
    "Sample",
    "Tree",
    "bias",
    "cheapest_set",
    "draw_contests",
    "draw_sample",
    "equivalent_error",
    "equivalent_labelers",
    "expected_width",
    "marginal_value",
    "mutual_information",
    "panel",
    "rank",
    "self_consistency",
    "spam_share",
    "symmetric_matrix",
]
