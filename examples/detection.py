"""Boxes of three annotators who miss some objects and invent others: how good are two detectors?

python examples/detection.py
"""

import trueup as tu

# 40 images. An annotator draws what they see; two detectors do the same with scores.
made = tu.detection.simulate_boxes(n_images=40, n_annotators=3, n_systems=2, random_state=0)

# 1. Boxes that overlap by half are one candidate; each annotator has voted on it by drawing it or not.
pool = tu.detection.match(made.found, made.objects, iou=0.5)
print(pool.labels)

# 2. Precision of each detector from the votes, and against the objects that are really there.
certain = tu.detection.match(made.found, made.truth, iou=0.5)
for system in pool.systems:
    ev = tu.detection.evaluate(pool, system, metrics=["precision", "recall"])
    low, high = ev["precision"].interval(0.95)
    reported = certain.scores(system) >= 0.5
    true = float((certain.votes[0, reported] == 1).mean())
    print(f"{system}: precision {low:.2f} to {high:.2f}, {true:.2f} in truth; holds the truth: {low <= true <= high}")
for warning in ev.warnings:
    print("warning:", warning)

# 3. Which is better?
cmp = tu.detection.compare(pool, metric="precision")
print("ranking:", cmp.ranking)
