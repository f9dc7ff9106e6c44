"""``mercer tune`` and ``mercer easy``: grid.py's and easy.py's options, files and last lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import mercer
from mercer import SVC, SVR
from mercer.cli.libsvm.grid_file import parse_exponents
from mercer.cli.main import main


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [1.0, 5.0, 100.0]
    y = np.where(X[:, 0] + 0.1 * X[:, 1] + 0.3 * rng.normal(size=80) > 0, 1, -1)
    monkeypatch.chdir(tmp_path)
    dump_svmlight_file(X, y, "train", zero_based=False)
    dump_svmlight_file(X[:20], y[:20], "test", zero_based=False)
    return X, y


def test_tune_prints_and_writes_what_grid_py_does(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    X, y = rows
    assert main(["tune", "-log2c", "-1,3,2", "-log2g", "-2,-4,-2", "-v", "4", "train"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 3 * 2 + 1
    assert lines[0] == "[local] log2c log2g rate (best so far)"
    C, gamma, rate = map(float, lines[-1].split())
    assert lines[-2].startswith("[local] ")
    assert f"(best c={C:g}, g={gamma:g}, rate={rate:g})" in lines[-2]
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    truth = {
        (c, g): 100 * cross_val_score(SVC(C=2.0**c, gamma=2.0**g), X, y, cv=folds).mean()
        for c in (-1, 1, 3)
        for g in (-2, -4)
    }
    written = dict(_cells(Path("train.out")))
    assert written.keys() == truth.keys()
    for cell, value in truth.items():
        assert written[cell] == pytest.approx(value, abs=1.3)
    assert rate == pytest.approx(max(written.values()))


def _cells(path: Path):  # type: ignore[no-untyped-def]
    for line in path.read_text().splitlines():
        c, g, rate = (float(part.partition("=")[2]) for part in line.split())
        yield (c, g), rate


def test_more_folds_than_rows_are_refused(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["tune", "-v", "81", "train"]) == 1
    assert capsys.readouterr().err == (
        "mercer tune: error: train: 80 rows cannot be divided into 81 folds; use fewer with -v\n"
    )


def test_tune_goes_on_from_a_file(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["tune", "-log2c", "-1,1,2", "-log2g", "null", "-q", "train"]) == 0
    first = capsys.readouterr().out
    assert len(first.splitlines()) == 1
    assert main(["tune", "-resume", "train.out", "-log2c", "-1,3,2", "-log2g", "null", "train"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3  # the header, one new cell and the last line
    assert len(Path("train.out").read_text().splitlines()) == 3
    assert main(["tune", "-out", "null", "-log2c", "1,1,1", "-log2g", "null", "-q", "train"]) == 0
    Path("bad").write_text("no rates\n")
    assert main(["tune", "-resume", "bad", "train"]) == 1
    assert "is not a results file" in capsys.readouterr().err


def test_easy_scales_searches_trains_and_predicts(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["easy", "-log2c", "1,5,2", "-log2g", "-1,-3,-2", "train", "test"]) == 0
    told = capsys.readouterr().out
    assert "Best c=" in told
    assert "Accuracy = " in told
    assert Path("train.model").read_text().startswith("svm_type c_svc")
    answers = Path("test.predict").read_text().split()
    assert set(answers) <= {"1", "-1"}
    assert main(["scale", "-r", "train.range", "test"]) == 0
    Path("scaled").write_text(capsys.readouterr().out)
    assert main(["predict", "scaled", "train.model", "again"]) == 0
    assert Path("again").read_text().split() == answers


@pytest.mark.parametrize(
    ("text", "truth"),
    [("-5,15,10", [-5, 5, 15]), ("3,-1,-2", [3, 1, -1]), ("1,2,0.5", [1, 1.5, 2]), ("null", None)],
)
def test_exponents(text: str, truth: list[float] | None) -> None:
    assert parse_exponents(text) == truth


@pytest.mark.parametrize("text", ["1,2", "a,b,c", "1,5,-1", "1,5,0"])
def test_bad_ranges_are_refused(rows, text: str, capsys) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SystemExit) as ended:
        main(["tune", "-log2c", text, "train"])
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_tables_are_searched(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    X, y = rows
    words = np.where(y > 0, "yes", "no")
    lines = [",".join([*map(str, x), "ab"[k % 2], word]) for k, (x, word) in enumerate(zip(X, words, strict=True))]
    Path("table.csv").write_text("p,q,r,kind,answer\n" + "\n".join(lines) + "\n")
    options = ["--target", "answer", "-log2c", "0,2,2", "-log2g", "-2,-2,1", "-v", "3"]
    assert main(["tune", "table.csv", *options]) == 0
    out = capsys.readouterr().out.splitlines()
    assert main(["tune", "table.csv", *options, "--json"]) == 0
    C, gamma, rate, _ = json.loads(capsys.readouterr().out).values()
    assert len(out) == 5
    assert re.fullmatch(r"C = 1, gamma = 0\.25: accuracy \d+\.\d%, best so far", out[0])
    label, count = max(zip(*np.unique(words, return_counts=True), strict=True), key=lambda pair: pair[1])
    constant = f"(always predicting '{label}': {count / 80:.1%})"
    assert out[2] == f"best in 3-fold cross-validation: C = {C:g}, gamma = 0.25: accuracy {rate:.1f}% {constant}"
    assert out[3] == "trained on all 80 rows with these parameters and saved as table.mercer"
    assert gamma == 0.25
    best = mercer.load("table.mercer")
    assert (best.estimator_.C, best.estimator_.gamma) == (C, gamma)
    assert best.estimator_.shape_fit_[0] == 80
    from mercer import tabular
    from mercer.tables.frame import Frame

    frame = Frame(["p", "q", "r", "kind"], [*X.T, np.array(["ab"[k % 2] for k in range(80)], dtype=object)])
    scores = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, words):
        model = tabular(SVC(C=C, gamma=gamma)).fit(frame.rows(train), words[train])
        scores.append(np.mean(model.predict(frame.rows(test)) == words[test]))
    assert rate == pytest.approx(100 * np.mean(scores), abs=1e-3)


def test_regressions_are_searched(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    X, _ = rows
    z = X[:, 0] + 0.01 * X[:, 2]
    dump_svmlight_file(X / [1, 5, 100], z, "numbers", zero_based=False)
    options = ["-s", "3", "-log2c", "0,4,4", "-log2g", "-1,-1,1", "-log2p", "-4,-4,1", "numbers"]
    assert main(["tune", *options]) == 0
    out = capsys.readouterr().out.splitlines()
    C, gamma, epsilon, mse = map(float, out[-1].split())
    assert (gamma, epsilon) == (0.5, 0.0625)
    folds = KFold(5, shuffle=True, random_state=0)
    found = cross_val_score(
        SVR(C=C, gamma=gamma, epsilon=epsilon), X / [1, 5, 100], z, cv=folds, scoring="neg_mean_squared_error"
    )
    assert mse == pytest.approx(-found.mean(), rel=1e-2)
    assert out[0] == "[local] log2c log2g log2p mse (best so far)"
    assert "mse=" in out[1]
    # The file can be gone on from, and the smaller error is the better one.
    assert main(["tune", "-resume", "numbers.out", *options]) == 0
    assert capsys.readouterr().out.splitlines() == out[-1:]
    assert len(Path("numbers.out").read_text().splitlines()) == 2
    values = [float(line.rpartition("=")[2]) for line in Path("numbers.out").read_text().splitlines()]
    assert mse == pytest.approx(min(values), rel=1e-4)


def test_one_class_machines_are_searched(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["tune", "-s", "2", "-log2n", "-3,-1,1", "-log2g", "-4,-4,1", "-q", "train"]) == 0
    nu, gamma, score = map(float, capsys.readouterr().out.split())
    assert nu in (0.125, 0.25, 0.5)
    assert gamma == 2.0**-4
    assert 0 <= score <= 1


def test_a_tuned_table_takes_every_option_of_train_and_is_saved(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    X, y = rows
    lines = [
        f"{k};{a:.3f};{b:.3f};{'-' if k % 9 == 0 else k % 4};{word}".replace(".", ",")
        for k, ((a, b, _), word) in enumerate(zip(X, np.where(y > 0, "yes", "no"), strict=True))
    ]
    Path("t.csv").write_text("nr;p;q;r;answer\n" + "\n".join(lines) + "\n")
    words = ["tune", "t.csv", "best.mercer", "--target", "answer", "-log2c", "0,2,2", "-log2g", "null", "-v", "3"]
    options = [
        "--drop",
        "nr",
        "--categorical",
        "r",
        "--na",
        "-",
        "--class-weight",
        "balanced",
        "-b",
        "1",
        "--decimal",
        ",",
    ]
    assert main([*words, *options, "-t", "laplacian", "-g", "0.5", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""  # not a line for every fit
    told = json.loads(out)
    assert told["model_file"] == "best.mercer"
    model = mercer.load("best.mercer")
    table = model.estimator_
    assert [type(one).__name__ for one in table.columns_] == ["DroppedColumn", "Numbers", "Numbers", "Levels"]
    assert table.columns_[3].n_holes == 9
    machine = table.estimator_
    assert (machine.C, machine.gamma, machine.kernel, machine.class_weight) == (told["C"], 0.5, "laplacian", "balanced")
    assert main(["predict", "t.csv", "best.mercer"]) == 0
    header = capsys.readouterr().out.splitlines()[0]
    assert header == "nr;p;q;r;answer;predicted;probability"


def test_the_best_model_of_a_text_is_saved_if_it_is_named(rows, capsys) -> None:  # type: ignore[no-untyped-def]
    words = ["-log2c", "1,3,2", "-log2g", "null", "-v", "3", "-q"]
    assert main(["tune", *words, "train"]) == 0
    assert not Path("train.model").exists()
    assert main(["tune", *words, "train", "best.model"]) == 0
    C, gamma, _ = map(float, capsys.readouterr().out.splitlines()[-1].split())
    assert main(["train", "-q", "-c", str(C), "-g", repr(1 / 3), "train", "again.model"]) == 0
    assert gamma == pytest.approx(1 / 3, rel=1e-5)
    assert Path("best.model").read_text() == Path("again.model").read_text()
