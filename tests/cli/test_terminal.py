"""What a person sees on a terminal, and what a program reads in a pipe."""

import contextlib
import csv
import gzip

import numpy as np
import pytest

import mercer
from cli.commands import on_a_terminal
from mercer.cli.main import main
from mercer.cli.terminal import printable
from mercer.files.libsvm_text import write_libsvm
from reference.address_space import address_space


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


# --- text of files ---------------------------------------------------------------------------------------------------

OBEYED = [
    *map(chr, range(32)),
    *map(chr, range(127, 160)),
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
]
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[Hverdict proves \x9b1m\u202eoptimality\u2069"


def test_every_character_that_a_terminal_obeys_is_escaped():
    for character in OBEYED:
        shown = printable(f"a{character}b")
        assert shown == f"a{character}b" if character in "\n\t" else shown.isprintable()
        assert ascii(character)[1:-1].lstrip("\\") in shown or character in "\n\t\r"
    plain = "γ = ½, naïve, 日本, \U0001f600"
    assert printable(plain) in (plain, "gamma = 1/2, na?ve, ??, ?")


def test_labels_and_names_of_files_paint_nothing(tmp_path, monkeypatch, capfd):
    """Forged labels, columns and file names through every command that prints them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        (x, "red" if k % 2 else HOSTILE, f"{HOSTILE}1" if x > 0 else "b") for k, x in enumerate(rng.normal(size=60))
    ]
    with open("t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([HOSTILE + "x", "colour", "kind"])
        writer.writerows(rows)
    commands = [
        ["easy", "t.csv", "--target", "kind", "-o", f"{HOSTILE.replace('/', '')}.mercer"],
        ["train", "t.csv", "m.mercer", "--target", "kind"],
        ["inspect", "m.mercer"],
        ["explain", "m.mercer", "t.csv"],
        ["predict", "t.csv", "m.mercer", "p.csv"],
        ["inspect", HOSTILE],
        ["predict", "t.csv", "m.mercer", "p.csv", HOSTILE],
        ["train", "t.csv", "m.mercer", "--target", HOSTILE],
    ]
    for number, words in enumerate(commands):
        with contextlib.suppress(SystemExit):
            assert main(words) == (number > 4)
        printed, told = capfd.readouterr()
        assert "\\x1b" in printed + told or words[0] == "predict", words
        assert not set(printed + told) & set(OBEYED) - set("\n\t"), words


def test_predictions_are_data_in_a_pipe_and_text_on_a_terminal(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    mercer.save(mercer.SVC(C=10).fit(X, ["a\x1b[2J", "a\x1b[2J", "b", "b"]), "m.mercer")
    write_libsvm(X, [0, 0, 1, 1], "rows")
    assert main(["predict", "--plain", "rows", "m.mercer", "-"]) == 0
    assert "a\x1b[2J\n" in capfd.readouterr().out
    shown, printed, _code = on_a_terminal(["predict", "--plain", "rows", "m.mercer", "-"], tmp_path)
    assert "a\\x1b[2J" in shown + printed


def test_the_page_of_a_notebook_holds_no_control_character():
    model = mercer.SVC(class_weight={HOSTILE: 1.0, "b": 2.0}).fit([[0.0], [1.0]], [HOSTILE, "b"])
    page = model._repr_html_inner() + model._repr_mimebundle_()["text/html"]
    assert "owned" in page
    assert not set(page) & set(OBEYED) - set("\n\t")


def test_no_memory_is_said_in_words(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with gzip.open("bomb.csv.gz", "wb") as file:
        file.write(b"x,y\n")
        for _ in range(120):
            file.write(b"1,2\n" * 250_000)
    with address_space(1 << 26):
        assert main(["easy", "bomb.csv.gz", "--target", "y"]) == 1
    assert "need more memory than this computer has left" in capfd.readouterr().err
