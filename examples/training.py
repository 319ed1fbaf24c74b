"""Train a small network on the votes of a crowd, and on their majority.

python examples/training.py       (needs: pip install 'trueup[torch]')
"""

import numpy as np
import torch
from torch import nn

import trueup as tu
from trueup.training.torch import MMSELoss, VoteDataset

# Two good labelers, two who call nearly everything a 0, three who guess.
crowd = [[[0.9, 0.1], [0.1, 0.9]]] * 2 + [[[0.5, 0.5], [0.95, 0.05]]] * 2 + [[[0.5, 0.5], [0.5, 0.5]]] * 3
data = tu.simulate.tars(n_items=2000, n_labelers=7, confusion=crowd, means=[[0, 0], [2, 0]], random_state=0)
labels = data.labels.select(items=range(1000))
X, X_test = data.features[:1000], torch.tensor(data.features[1000:], dtype=torch.float32)
truth_test = data.truth[1000:]


def train(batches, loss) -> float:
    """A plain training loop; nothing in it knows of noise but the loss. Accuracy on the test items."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(15):
        for x, target in batches:
            optimiser.zero_grad()
            loss(network(x), target).backward()
            optimiser.step()
    with torch.no_grad():
        return float((network(X_test).argmax(dim=1).numpy() == truth_test).mean())


majority = torch.tensor(labels.answer_counts.argmax(axis=1))
items = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), majority)
plain = train(torch.utils.data.DataLoader(items, 50, shuffle=True), nn.CrossEntropyLoss())

noise = tu.noise.fit(labels, "dawid-skene")
trust = np.einsum("tcc,c->t", noise.confusion_, noise.prior_)
print("who can be trusted:", trust.round(1).tolist())
ours = train(VoteDataset(X, labels).loader(50), MMSELoss(noise))

print(f"CrossEntropyLoss on the majority: {plain:.3f}")
print(f"MMSELoss on the votes:            {ours:.3f}")
print("better:", ours > plain + 0.02)
