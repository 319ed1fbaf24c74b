"""A small pool of boxes and photographs of its images, for the tests of cards and tiles."""

import pytest

from trueup.detection import match, simulate_boxes

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cfc0000000030001006a9e5f2f0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def pool():
    data = simulate_boxes(n_images=10, n_annotators=3, random_state=0)
    return match(data.found, data.objects)


@pytest.fixture
def photos(pool, tmp_path):
    """The folder of the photographs."""
    for name in pool.images.ids.tolist():
        (tmp_path / f"{name}.png").write_bytes(PIXEL)
    return tmp_path
