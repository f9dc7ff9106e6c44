"""A few seconds of the guided fuzzing, with a seed: the harness works, and finds what there is to find."""

import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.estimators.fitting.pipeline import state
from mercer.files import libsvm_model

sys.path.insert(0, str(Path(__file__).parent))

import guided


def fuzz(target, files, folder, seed=0):
    words = [target, "60", "--files", str(files), "--seed", str(seed)]
    return guided.main([*words, "--corpus", str(folder / "corpus"), "--findings", str(folder / "findings")])


@pytest.mark.parametrize(
    ("target", "files"), [("mercer", 400), ("libsvm", 1500), ("liblinear", 1500), ("svmlight", 1500)]
)
def test_nothing_is_found(target, files, tmp_path, capsys):
    assert fuzz(target, files, tmp_path) == 0
    assert f"0 findings in {files} files" in capsys.readouterr().out
    assert len(list((tmp_path / "corpus").iterdir())) > 5  # coverage did guide it
    assert list((tmp_path / "findings").iterdir()) == []


def test_a_reader_that_trusts_its_counts_is_caught(tmp_path, monkeypatch, capsys):
    """LIBSVM's own mistake: the number of coefficients in a line is believed, not counted."""

    def trusting(lines, count, width, name, first_line, announced):
        return read(lines, len(lines), width, name, first_line, announced)

    read = libsvm_model.read_vectors
    monkeypatch.setattr(libsvm_model, "read_vectors", trusting)
    assert fuzz("libsvm", 3000, tmp_path) > 0
    assert "FINDING 1" in capsys.readouterr().out


def test_a_reader_that_takes_more_memory_than_its_file_is_caught(tmp_path, monkeypatch, capsys):
    """As if the widths of strings were not asked of the budget: every file has an array as long as 30 of its sizes."""

    def wasteful(content, *rest):
        np.zeros(2**26 + 40 * len(content), dtype=np.uint8)
        return parse(content, *rest)

    parse = libsvm_model.parse_libsvm_model
    monkeypatch.setattr(libsvm_model, "parse_libsvm_model", wasteful)
    assert fuzz("libsvm", 5, tmp_path) > 0
    assert "bytes of memory" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_loader_that_sets_any_attribute_is_caught(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(state, "check_names", lambda *_: None)
    monkeypatch.setattr(state, "check_state", lambda *_: None)
    # One seed in two finds it within 800 files; which ones do depends on the files that mercer writes.
    assert any(fuzz("mercer", 800, tmp_path / str(seed), seed) for seed in range(2, 12))
    assert "FINDING 1" in capsys.readouterr().out
