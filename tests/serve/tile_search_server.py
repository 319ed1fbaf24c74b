"""A server of a session about tiles, with a simulated pool."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from threaded import InThread
from vetting_server import Vetting, wait_for

from trueup.detection import Pool, TileSearch, TilesToSearch, make_deck, match, save_for_app, simulate_boxes
from trueup.serve.card_service import Layout
from trueup.serve.estimating import LatestSnapshot
from trueup.serve.running import make_app
from trueup.serve.services import Look, Services
from trueup.storage import open_storage

NAME = "tiles"


@pytest.fixture
def tile_search(tmp_path: Path) -> Iterator[tuple[Vetting, Pool, TilesToSearch]]:
    """A served session with twelve tiles and three hidden outlines, its pool and its tiles."""
    data = simulate_boxes(n_images=10, n_annotators=3, random_state=0)
    pool = match(data.found, data.objects)
    deck = make_deck(pool, n_candidates=5, n_planted=0, n_tiles=12, n_hidden=3, seed=4)
    path = save_for_app(deck, tmp_path / "app").tiles
    assert path is not None
    tiles = TilesToSearch.read(path)
    storage, latest = open_storage(f"sqlite:///{tmp_path}/tiles.db"), LatestSnapshot()
    search = TileSearch(tiles, storage=storage, name=NAME)
    estimating = InThread(partial(TileSearch, tiles), storage, NAME, latest)
    look = Look(layout=Layout("tile", image="image"), images=path.parent)
    services = Services(storage, NAME, search.labels, latest, estimating, look=look)
    estimating.start()
    wait_for(lambda: (storage.cards(NAME) and latest.snapshot) or latest.problem)
    assert latest.problem is None, latest.problem
    yield Vetting(storage, services, make_app(services), {}), pool, tiles
    services.stopping.set()
    estimating.stop()
    storage.close()
