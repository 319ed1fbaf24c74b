"""The engine on a GPU: votes once on a device, expectation–maximisation and the sweeps of the sampler there."""
