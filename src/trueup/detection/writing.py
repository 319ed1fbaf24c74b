"""Candidate objects as annotations in COCO's format, with how sure each is and who drew it."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from trueup._base.types import Floats
from trueup.data.labels import Labels
from trueup.detection.pool import REAL, Pool
from trueup.exceptions import InvalidParameter


def write_coco(
    pool: Pool,
    path: str | PathLike[str],
    *,
    probabilities: Floats | None = None,
    labels: Labels | None = None,
    least: float = 0.5,
) -> int:
    """Write the candidates that are probably objects; how many these are.

    Parameters
    ----------
    pool : Pool
    path : path
        A JSON file of COCO's instances. Each annotation has "probability" (that it is an object), "drawn_by",
        "not_drawn_by" and "vetted". Its "area" is that of the pool, so of the mask where there is one.
    probabilities : array of shape (n_candidates,), optional
        P(object) of each; by default the share of annotators who drew it among those who looked.
    labels : Labels, optional
        ``pool.labels`` with gold: vetted candidates are what was said of them.
    least : float
        Candidates with less are left out.
    """
    chances = _shares(pool) if probabilities is None else np.array(probabilities, dtype=float)  # changed below
    if chances.shape != (len(pool),):
        raise InvalidParameter(f"probabilities must be one for each of {len(pool)} candidates, got {chances.shape}")
    gold = {} if labels is None else labels.gold
    position = {item: k for k, item in enumerate(pool.items)}
    for item, truth in gold.items():
        chances[position[str(item)]] = float(truth == REAL)
    ids = pool.images.ids.tolist()
    annotations = [
        _annotation(pool, k, ids[pool.image[k]], float(chances[k]), pool.items[k] in gold)
        for k in np.flatnonzero(chances >= least).tolist()
    ]
    content = {
        "images": [
            _image(name, size, file) for name, size, file in zip(ids, pool.images.sizes, pool.images.files, strict=True)
        ],
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(pool.categories)],
        "annotations": annotations,
    }
    Path(path).write_text(json.dumps(content), encoding="utf-8")
    return len(annotations)


def _annotation(pool: Pool, k: int, image: Any, probability: float, is_vetted: bool) -> dict[str, Any]:
    votes = pool.votes[:, k]
    row: dict[str, Any] = {
        "id": int(k) + 1,
        "image_id": image,
        "category_id": int(pool.category[k]) + 1,
        "bbox": pool.boxes[k].tolist(),
        "area": float(pool.areas[k]),
        "iscrowd": 0,
        "probability": probability,
        "vetted": is_vetted,
        "drawn_by": [name for name, vote in zip(pool.annotators, votes, strict=True) if vote == 1],
        "not_drawn_by": [name for name, vote in zip(pool.annotators, votes, strict=True) if vote == 0],
    }
    if pool.masks is not None:
        mask = pool.masks[k]
        row["segmentation"] = {"size": list(mask["size"]), "counts": mask["counts"].decode("ascii")}
    return row


def _image(name: Any, size: Floats, file: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": name, "file_name": file}
    if not np.isnan(size).any():
        row |= {"width": int(size[0]), "height": int(size[1])}
    return row


def _shares(pool: Pool) -> Floats:
    drawn, looked = (pool.votes == 1).sum(axis=0), (pool.votes >= 0).sum(axis=0)
    return np.asarray(drawn / np.maximum(looked, 1), dtype=float)
