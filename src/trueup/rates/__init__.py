"""The arithmetic of true and apparent rates: what a classifier's error is when its test labels err too.

After Lam and Stork (2003). Everything takes numbers or arrays, by name.

- `true_error`, `apparent_error`, `rule_of_thumb`: labels and classifier err independently
- `error_bounds`: they may err together
- `recover_confusion`, `joint_distribution`: whole confusion matrices, any number of classes
- `true_break_even`, `apparent_break_even`: precision and recall where they are equal
- `noisy_labels_per_perfect`, `labeling_policy`, `policy_boundary`, `combined_mislabeling`: what a label is worth
"""

from trueup.rates.errors import TrueError, apparent_error, error_bounds, rule_of_thumb, true_error
from trueup.rates.matrices import RecoveredConfusion, joint_distribution, recover_confusion
from trueup.rates.policy import (
    LabelingPolicy,
    apparent_break_even,
    combined_mislabeling,
    labeling_policy,
    noisy_labels_per_perfect,
    policy_boundary,
    true_break_even,
)

__all__ = [
    "LabelingPolicy",
    "RecoveredConfusion",
    "TrueError",
    "apparent_break_even",
    "apparent_error",
    "combined_mislabeling",
    "error_bounds",
    "joint_distribution",
    "labeling_policy",
    "noisy_labels_per_perfect",
    "policy_boundary",
    "recover_confusion",
    "rule_of_thumb",
    "true_break_even",
    "true_error",
]
