"""The engine on a GPU: votes once on a device, expectation–maximisation there."""
