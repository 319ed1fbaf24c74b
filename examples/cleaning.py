"""An expert fixes 40 of 600 training labels: those that help the classifier most, against 40 drawn at random.

python examples/cleaning.py
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

import trueup as tu

# Labels of class 0 are wrong in 40% of the cases, those of class 1 in 10%.
data = tu.simulate.tars(n_items=900, means=[[0, 0], [3, 0]], noise_rates=(0.4, 0.1), random_state=1)
labels = data.labels.select(items=range(600))
X, X_test, truth_test = data.features[:600], data.features[600:], data.truth[600:]
noise = tu.noise.Confusion([[0.6, 0.4], [0.1, 0.9]])


def clean(strategy: str, n: int) -> tu.CleaningAdvisor:
    """An advisor after n answers."""
    advisor = tu.CleaningAdvisor(LogisticRegression(), X, labels, noise=noise, strategy=strategy, random_state=0)
    for _ in range(n // 5):
        advisor.tell({item: int(data.truth[item]) for item in advisor.ask(5)})
    return advisor


start, chosen, random = clean("emi", 0), clean("emi", 40), clean("random", 40)
wrong = np.mean([labels.answer_counts[item].argmax() != data.truth[item] for item in range(600)])
print(f"{wrong:.0%} of the training labels are wrong")
for name, advisor in (
    ("no label cleaned", start),
    ("40 drawn at random", random),
    ("40 chosen by the advisor", chosen),
):
    print(f"{name:25} accuracy on test items {advisor.model_.score(X_test, truth_test):.3f}")
low, high = chosen.score_.interval(0.95)
print(f"what the advisor knows of it, from noisy labels alone: {low:.2f} to {high:.2f}")
print("one more label is expected to be worth", f"{chosen.value.mean:+.4f}")

tolerant = start.oracle_free("noise-tolerant")
print(f"without an expert, with a loss that allows for noise: {tolerant.score(X_test, truth_test):.3f}")
