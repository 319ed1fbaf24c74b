"""Which labelers can be trusted, how many are needed, what is a label worth?"""

from trueup.labelers.channel import symmetric_matrix
from trueup.labelers.draws import spam_share
from trueup.labelers.equivalents import equivalent_error, equivalent_labelers
from trueup.labelers.hiring import LabelerSet, cheapest_set
from trueup.labelers.information import Information, mutual_information
from trueup.labelers.marginal import MarginalValue, marginal_value
from trueup.labelers.precision import expected_width
from trueup.labelers.ranking import LabelerRanking, RankedLabeler, rank

__all__ = [
    "Information",
    "LabelerRanking",
    "LabelerSet",
    "MarginalValue",
    "RankedLabeler",
    "cheapest_set",
    "equivalent_error",
    "equivalent_labelers",
    "expected_width",
    "marginal_value",
    "mutual_information",
    "rank",
    "spam_share",
    "symmetric_matrix",
]
