"""The example that trains a network on a real crowd runs."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_network.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("train_network", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.data
def test_it_prints_a_line_for_each_loss(example, data_folder, monkeypatch, capsys):
    monkeypatch.setenv("TRUEUP_DATA", str(data_folder))
    monkeypatch.setattr(sys, "argv", ["train_network.py", "--epochs", "2", "--seeds", "1"])
    example.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert "1188 test images" in head
    assert len(lines) == 7
    assert all(0.3 < float(line.split()[-1]) < 1 for line in lines)


@pytest.mark.slow
@pytest.mark.data
def test_votes_are_better_than_their_majority(example, data_folder):
    folder = data_folder / "crowd-labelme-feat"
    runs = [example.accuracies(folder, epochs=30, device="cpu", seed=seed) for seed in range(5)]
    found = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
    least = found["CrossEntropyLoss, majority"]
    for name in ("MMSELoss", "NoisyLikelihoodLoss", "CrowdLayer", "CrowdLayer, joint", "CrowdLayer, joint, volume"):
        assert least < found[name] < found["CrossEntropyLoss, truth"], name


@pytest.mark.parametrize(("folder", "sentence"), [(".", "must hold crowd-labelme-feat"), ("", "must be named")])
def test_missing_data_are_said(example, folder, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUEUP_DATA", folder)
    monkeypatch.setattr(sys, "argv", ["train_network.py"])
    with pytest.raises(SystemExit, match=sentence):
        example.main()
