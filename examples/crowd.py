"""Votes of a crowd in a file: how good are two classifiers, which one is better, and a report to show.

python examples/crowd.py
"""

import numpy as np

import trueup as tu

# A crowd of ten, four votes an item. In your project this file is there already.
crowd = tu.simulate.dawid_skene(n_items=300, n_labelers=10, votes_per_item=4, random_state=2)
tu.write_labels(crowd.labels, "votes.csv")
rng = np.random.default_rng(0)
old = crowd.predictions
new = np.where(rng.random(300) < 0.5, crowd.truth, old)  # corrects half of the mistakes of the old one

# 1. Read the votes, and see what is odd about them.
labels = tu.read_labels("votes.csv")
print(labels)
for note in labels.notes():
    print("note:", note)

# 2. An expert checks 60 items that are drawn at random.
sample = tu.labelers.draw_sample(labels, 60, random_state=0)
answers = {item: int(crowd.truth[item]) for item in sample.items.tolist()}
labels = labels.with_gold(answers, drawn=sample.drawn)

# 3. How good is the new classifier? The answer rests on the checked items; votes make it narrower.
ev = tu.evaluate(new, labels, metrics=["accuracy", "f1"])
low, high = ev["accuracy"].interval(0.95)
true = float((new == crowd.truth).mean())
print(f"accuracy of the new one: {low:.2f} to {high:.2f}, rests on {ev.basis}; holds the truth: {low <= true <= high}")
for warning in ev.warnings:
    print("warning:", warning)

# 4. Is it better than the old one?
cmp = tu.compare({"old": old, "new": new}, labels)
low, high = cmp.difference("new", "old").interval(0.95)
print(f"new - old: {low:.2f} to {high:.2f}; better: {low > 0}")

# 5. A page to show.
print("report:", ev.save_html("report.html").name)
