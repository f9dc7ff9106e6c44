"""What a person sees on a terminal, and what a program reads in a pipe."""

import numpy as np
import pytest

from cli.commands import on_a_terminal
from mercer.cli.main import main
from mercer.files.libsvm_text import write_libsvm


@pytest.fixture
def data(tmp_path):
    X = np.random.default_rng(0).normal(size=(800, 8))
    write_libsvm(X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1), tmp_path / "data")
    return tmp_path


def test_a_bar_on_a_terminal_that_leaves_nothing_behind(data):
    pytest.importorskip("rich")
    shown, printed, code = on_a_terminal(["train", "-v", "5", "data"], data, apart=True)
    assert code == 0
    assert "5-fold cross-validation" in shown
    assert "/5" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the last thing it does is to wipe its line
    assert printed.startswith("Cross Validation Accuracy = ")
    shown, printed, code = on_a_terminal(["train", "data", "m.model"], data, apart=True)
    assert "training on 800 rows" in shown
    assert printed.startswith("*\noptimization finished")


def test_quiet_when_asked(data):
    assert on_a_terminal(["train", "-q", "data", "m.model"], data, apart=True) == ("", "", 0)


def test_nothing_but_text_where_there_is_no_terminal(data, monkeypatch, capfd):
    monkeypatch.chdir(data)
    for words in (["train", "data", "m.model"], ["train", "-v", "5", "data"]):
        assert main(words) == 0
        printed, shown = capfd.readouterr()
        assert shown == ""
        assert "\x1b" not in printed
        assert "\r" not in printed


def test_exit_codes(data, monkeypatch, capsys):
    """0 done, 1 failed, 2 wrong usage; 130 is in test_train.py."""
    monkeypatch.chdir(data)
    for words, code in (
        (["train", "-q", "data"], 0),
        (["--version"], 0),
        (["train", "--help"], 0),
        (["train", "nothing"], 1),
        (["train", "-z", "1", "data"], 2),
        (["train", "--nonsense", "1", "data"], 2),
        (["nonsense"], 2),
        ([], 2),
        (["predict", "data"], 2),
        (["predict", "data", "nothing"], 1),
    ):
        try:
            returned = main(words)
        except SystemExit as left:
            returned = left.code
        assert returned == code, words
        capsys.readouterr()
