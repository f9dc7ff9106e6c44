"""Messages about slips name the file, the reason and what was probably meant."""

from pathlib import Path

import numpy as np
import pytest

import mercer
from cli.commands import run
from mercer import SVC, SVR, CalibratedClassifier, OneClassSVM
from mercer.files.libsvm_text import write_libsvm

pytestmark = pytest.mark.usefixtures("folder")
X = np.random.default_rng(0).normal(size=(40, 2)).round(3)
y = np.where(X.sum(axis=1) > 0, 1, -1)


def write_table(name, targets):
    lines = [f"{a},{b},{target}" for (a, b), target in zip(X, targets, strict=True)]
    Path(name).write_text("\n".join(["a,b,y", *lines, ""]))


@pytest.mark.parametrize("command", ["easy", "train"])
def test_a_word_among_the_numbers_of_a_target(command, capsys):
    write_table("t.csv", ["unknown" if i == 7 else f"{2.5 * a:.4f}" for i, a in enumerate(X[:, 0])])
    run(command, "t.csv", "--target", "y", code=1)
    told = capsys.readouterr().err
    assert "t.csv: the target holds 'unknown' beside numbers, so each number counts as a class" in told
    assert "remove the rows with 'unknown'" in told


def test_the_bad_file_of_a_folder_is_named(capsys):
    Path("rows").mkdir()
    write_libsvm(X, y, "rows/a.svm")
    Path("rows/b.svm").write_text("1 1:2\nsecret 1:3\n")
    run("train", "rows", code=1)
    assert f"{Path('rows/b.svm')}:2:1: the label 'secret'" in capsys.readouterr().err


def test_a_folder_without_targets_is_refused(capsys):
    pandas = pytest.importorskip("pandas")
    Path("rows").mkdir()
    pandas.DataFrame(X, columns=["a", "b"]).to_parquet("rows/a.parquet")
    run("train", "rows", "-q", code=2)
    assert (
        "the files contain no targets: use LIBSVM text, or Parquet files with --target COLUMN"
        in capsys.readouterr().err
    )
    run("train", "rows", "m.mercer", "-s", "2", "-q")
    assert Path("m.mercer").exists()


def test_a_later_piece_of_a_long_file_is_named(monkeypatch):
    monkeypatch.setattr("mercer.files.stored_rows._TEXT_BYTES", 16)
    Path("long.svm").write_text("1 1:2\n-1 1:3\n" * 20 + "secret 1:3\n")
    with pytest.raises(ValueError, match=r"long\.svm below line (\d+):(\d+):1: the label 'secret'") as error:
        mercer.stored_rows("long.svm")
    before, line = str(error.value).partition("below line ")[2].split(":")[:2]
    assert int(before) + int(line) == 41


def test_rows_without_names_for_columns_with_names(capsys):
    write_table("t.csv", np.where(y > 0, "yes", "no"))
    run("train", "t.csv", "--target", "y", "-q")
    write_libsvm(X, y, "text")
    run("predict", "text", "t.mercer", "out", code=1)
    told = capsys.readouterr().err
    assert "text is LIBSVM text, whose features have no names, but t.mercer was trained on a table's columns" in told
    assert "'a', 'b'" in told
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: SVC(c=1), TypeError, "SVC got an unexpected parameter c=1; did you mean C?"),
        (lambda: SVR(epsilom=1), TypeError, "did you mean epsilon?"),
        (lambda: mercer.tabular(SVC(), catgorical=["a"]), TypeError, "did you mean categorical?"),
        (lambda: SVC().fit(X, y).calibrate(X, y, cv="kfold"), ValueError, "a number of folds, a splitter"),
        (lambda: SVR().fit(X, y).calibrate(X, y, cv="kfold"), ValueError, "a number of folds, a splitter"),
        (lambda: OneClassSVM().fit(X).calibrate(X, cv="kfold"), ValueError, "a number of folds, a splitter"),
        (lambda: CalibratedClassifier(SVC(), cv="kfold").fit(X, y), ValueError, "a number of folds, a splitter"),
    ],
)
def test_what_was_meant(call, error, told):
    with pytest.raises(error) as raised:
        call()
    assert told in str(raised.value)


def test_a_parameter_like_no_other_has_no_suggestion():
    with pytest.raises(TypeError, match=r"unexpected parameter xyzzy=1$"):
        SVC(xyzzy=1)


def test_another_case_is_the_name_that_was_meant():
    _ = mercer.linear_path, mercer.svm_path  # whose docstrings speak of SVC
    for slip, name in (("svc", "SVC"), ("svr", "SVR"), ("linearsvc", "LinearSVC"), ("Easy", "easy")):
        with pytest.raises(AttributeError, match=rf"did you mean {name}\?"):
            getattr(mercer, slip)


def test_an_ending_that_was_meant(capsys):
    write_libsvm(X, y, "text")
    run("train", "text", "m.mercer", "-q")
    for slip, meant in (("m.onxx", "m.onnx"), ("m.mercr", "m.mercer"), ("m.cc", "m.c")):
        run("convert", "m.mercer", slip, code=1)
        assert f"did you mean {meant}?" in capsys.readouterr().err
        assert not Path(slip).exists()
    run("convert", "m.mercer", "m.onxx", "--to", "libsvm")
    for name in ("m.model", "m", "m.svm"):
        run("convert", "m.mercer", name)


@pytest.mark.parametrize("words", [["--hlep"], ["--hlep", "easy"], ["--versoin"], ["-x", "train"]])
def test_an_option_before_any_command(words, capsys):
    run(*words, code=2)
    told = capsys.readouterr().err
    assert f"unknown option {words[0]}" in told
    meant = {"--hlep": "--help", "--versoin": "--version"}.get(words[0])
    assert ("did you mean" in told) == (meant is not None)
    assert meant is None or f"(did you mean {meant}?)" in told


def test_ctrl_c_while_libraries_are_loaded(monkeypatch, capsys):
    def interrupted(module):
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.cli.main.import_module", interrupted)
    run("train", code=130)
    assert capsys.readouterr().err == "mercer: interrupted\n"
