"""Which training label an oracle should clean next."""

from trueup.cleaning.advisor import (
    BudgetCurve,
    CleaningAdvisor,
    CleanOrVote,
    budget_curve,
    clean_or_vote,
    shrunk_improvement,
    value_of_cleaning,
)
from trueup.cleaning.emi import EMI, expected_improvement, flip_models, model_uncertainty
from trueup.cleaning.fast_linear import FlipModels
from trueup.cleaning.flips import (
    Candidates,
    Retrained,
    UnbiasedScorer,
    flip_candidates,
    retrained_scores,
    true_class_probabilities,
)
from trueup.cleaning.problem import CheckUntil, CleaningProblem, CleaningState, LikelyWrong, check_until, likely_wrong
from trueup.cleaning.strategies import STRATEGIES, CleaningStrategy, get_cleaning_strategy
from trueup.training.objectives import noise_aware_probabilities, noise_removed, noise_tolerant

__all__ = [
    "EMI",
    "STRATEGIES",
    "BudgetCurve",
    "Candidates",
    "CheckUntil",
    "CleanOrVote",
    "CleaningAdvisor",
    "CleaningProblem",
    "CleaningState",
    "CleaningStrategy",
    "FlipModels",
    "LikelyWrong",
    "Retrained",
    "UnbiasedScorer",
    "budget_curve",
    "check_until",
    "clean_or_vote",
    "expected_improvement",
    "flip_candidates",
    "flip_models",
    "get_cleaning_strategy",
    "likely_wrong",
    "model_uncertainty",
    "noise_aware_probabilities",
    "noise_removed",
    "noise_tolerant",
    "retrained_scores",
    "shrunk_improvement",
    "true_class_probabilities",
    "value_of_cleaning",
]
