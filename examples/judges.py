"""Verdicts of language models on two systems, 60 checks of a person, to a gate: may the new system go out?

python examples/judges.py
"""

import numpy as np

import trueup as tu

# Five judges look at 200 outputs of each of two systems. Three of them are prompts of one model: now and then all
# three pass an output that is bad.
rng = np.random.default_rng(1)
pass_rate, judges = {"old": 0.5, "new": 0.75}, ["opal-1", "opal-2", "opal-3", "flint", "rules"]
truth, verdicts = {}, {"item": [], "labeler": [], "label": []}
outputs = {"item": [], "system": [], "prompt": []}
for prompt in range(200):
    for system, rate in pass_rate.items():
        item, good = f"{system}-{prompt}", rng.random() < rate
        truth[item] = "pass" if good else "fail"
        outputs["item"].append(item)
        outputs["system"].append(system)
        outputs["prompt"].append(prompt)
        fooled = not good and rng.random() < 0.3
        for judge in judges:
            says_good = good if rng.random() < 0.85 else not good
            verdicts["item"].append(item)
            verdicts["labeler"].append(judge)
            verdicts["label"].append("pass" if says_good or (fooled and judge.startswith("opal")) else "fail")

labels = tu.Labels.from_frame(verdicts).with_items(outputs)
print(labels)

# 1. What the judges say, and whether they err together.
noise = tu.noise.DawidSkene().fit(labels)
print(tu.noise.check_independence(labels, noise).sentence)

# 2. A person checks 60 outputs that are drawn at random.
sample = tu.labelers.draw_sample(labels, 60, random_state=0)
labels = labels.with_gold({item: truth[item] for item in sample.items.tolist()}, drawn=sample.drawn)

# 3. How often does each system pass in truth? Both answered the same prompts.
rates = tu.share(labels, of="pass", by="system", cluster="prompt")
majority = labels.classes[labels.answer_counts.argmax(axis=1)]
for system in pass_rate:
    here = labels.item_column("system") == system
    low, high = rates[system].interval(0.95)
    true = np.mean([truth[item] == "pass" for item in labels.items[here]])
    print(
        f"{system}: {np.mean(majority[here] == 'pass'):.2f} by the majority of judges, {low:.2f} to {high:.2f} by "
        f"trueup ({rates.basis}), {true:.2f} in truth; holds the truth: {low <= true <= high}"
    )

# 4. May the new system go out? In a CI job: trueup share … --not-worse-than old --require-gold
gate = tu.gate(rates, candidate="new", not_worse_than="old", margin=0.02, require_gold=True)
print(gate.results[0].sentence)
print("verdict:", gate.verdict)
