"""Training networks on noisy votes: losses, layers and a data set of votes for torch."""

from trueup._base.optional import require

require("torch", purpose="trueup.training.torch")

from trueup.training.torch.layers import CrowdLayer, NoiseLayer  # noqa: E402
from trueup.training.torch.losses import MMSELoss, NoisyLikelihoodLoss, PartialLabelLoss, ProxyLoss  # noqa: E402  # noqa: E402
from trueup.training.torch.votes import VoteDataset, Votes  # noqa: E402

__all__ = [
    "CrowdLayer",
    "MMSELoss",
    "NoiseLayer",
    "NoisyLikelihoodLoss",
    "PartialLabelLoss",
    "ProxyLoss",
    "VoteDataset",
    "Votes",
]
