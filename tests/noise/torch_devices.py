"""The devices that tests of the torch engine run on: always the processor, and a GPU where there is one."""

import pytest

torch = pytest.importorskip("torch", reason="the engine on a GPU needs torch: pip install 'trueup[torch]'")

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
DEVICES = ["cpu", pytest.param("cuda", marks=NEEDS_GPU)]
