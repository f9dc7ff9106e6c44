"""What stands in the column to be predicted: cells that hold nothing, codes, long integers, other encodings."""

import json
import os
import threading

import numpy as np
import pytest

import mercer
from mercer.cli.main import main

pytestmark = pytest.mark.usefixtures("folder")


def table(path, labels):
    """Two features that tell the first label from the others, and the label in quotes where it needs them."""
    first = str(labels[0]).strip()
    lines = ["a,b,label"]
    for i, label in enumerate(labels):
        cell = f'"{label}"' if "\n" in str(label) else label
        lines.append(f"{i % 7},{int(str(label).strip() == first) * 3 + i % 2},{cell}")
    path.write_text("\n".join([*lines, ""]))


def told(words, capsys, code):
    assert main(words) == code
    out, err = capsys.readouterr()
    return err if code else out


@pytest.mark.parametrize("nothing", ["", "  ", "NA", "N/A", "nan", "NaN", "null", "<NA>"])
@pytest.mark.parametrize(
    ("machine", "others"), [("c_svc", "01"), ("c_svc", ("no", "yes")), ("nu_svc", "01"), ("epsilon_svr", "01")]
)
def test_a_missing_label_is_no_class(nothing, machine, others, folder, capsys):
    labels = list(others) * 30
    for row in (4, 9, 17):
        labels[row] = nothing
    table(folder / "t.csv", labels)
    error = told(["train", "t.csv", "--target", "label", "--machine", machine], capsys, 1)
    assert "row 5 of the column 'label'" in error
    assert os.listdir(folder) == ["t.csv"]


def test_a_missing_label_in_other_formats(folder, capsys):
    X = np.arange(60.0).reshape(30, 2)
    np.savez("t.npz", X=X, y=np.where(np.arange(30) == 7, np.nan, np.arange(30) % 2))
    assert "row 8 of the column 'y'" in told(["train", "t.npz"], capsys, 1)
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for values in (["a", "b"], [0, 1], [True, False]):
        column = [None if i == 7 else values[i % 2] for i in range(30)]
        parquet.write_table(pyarrow.table({"a": X[:, 0], "label": column}), "t.parquet")
        for machine in ("c_svc", "epsilon_svr"):
            words = ["train", "t.parquet", "--target", "label", "--machine", machine]
            error = told(words, capsys, 1)
            assert "of the column 'label'" in error
            if machine == "c_svc":
                assert "row 8" in error


@pytest.mark.parametrize(("machine", "figure"), [("c_svc", "correct"), ("epsilon_svr", "mean_squared_error")])
def test_rows_without_a_truth_are_not_judged(machine, figure, folder, capsys):
    table(folder / "t.csv", ["0", "1"] * 30)
    main(["train", "t.csv", "m.mercer", "--target", "label", "--machine", machine, "-q"])
    lines = (folder / "t.csv").read_text().splitlines()
    (folder / "known.csv").write_text("\n".join([lines[0], *lines[1:5], ""]))
    (folder / "some.csv").write_text("\n".join([lines[0], *lines[1:5], "1,1,", "2,2,NA", ""]))
    figures = json.loads(told(["predict", "known.csv", "m.mercer", "o", "--target", "label", "--json"], capsys, 0))
    partly = json.loads(told(["predict", "some.csv", "m.mercer", "o", "--target", "label", "--json"], capsys, 0))
    assert partly == figures
    assert figures.get("correct", 4) == 4
    assert figures[figure] >= 0
    assert len((folder / "o").read_text().splitlines()) == 1 + 6
    page = told(["predict", "some.csv", "m.mercer", "o", "--target", "label"], capsys, 0)
    assert "2 of 6 rows have no target value and are not scored" in page
    (folder / "none.csv").write_text("a,b,label\n1,1,\n2,2,\n")
    assert "Accuracy" not in told(["predict", "none.csv", "m.mercer", "o", "--target", "label"], capsys, 0)


def test_a_truth_of_another_spelling_is_compared_as_the_model_answers(folder, capsys):
    """One class that the model does not know must not make the others wrong, nor must labels that look like numbers."""
    table(folder / "t.csv", ["0", "1"] * 30)
    table(folder / "codes.csv", ["01", "1"] * 30)
    for name in ("t", "codes"):
        main(["train", f"{name}.csv", "--target", "label", "-q"])
    lines = (folder / "t.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join([*lines[:5], "1,1,unknown", ""]))
    words = ["predict", "new.csv", "t.mercer", "o", "--target", "label"]
    assert "Accuracy = 80% (4/5)" in told(words, capsys, 0)
    ones = [line for line in (folder / "codes.csv").read_text().splitlines() if not line.endswith("01")]
    (folder / "ones.csv").write_text("\n".join([*ones, ""]))
    words = ["predict", "ones.csv", "codes.mercer", "o", "--target", "label"]
    assert "Accuracy = 100% (30/30)" in told(words, capsys, 0)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["01", "1"], ["01", "1"]),
        (["007", "008"], ["007", "008"]),
        (["99999999999999999998", "99999999999999999999"], ["99999999999999999998", "99999999999999999999"]),
        (["9007199254740992.0", "9007199254740993.0"], ["9007199254740992.0", "9007199254740993.0"]),
        (["9007199254740992", "9007199254740993"], [9007199254740992, 9007199254740993]),
        (["1_0", "10"], ["10", "1_0"]),
        (["+1", "-1"], [-1, 1]),
        (["1.0", "2"], [1.0, 2.0]),
        (["yes ", "no", "yes", "no  "], ["no", "yes"]),
    ],
)
def test_different_labels_stay_different(labels, classes, folder):
    table(folder / "t.csv", labels * (60 // len(labels)))
    assert main(["train", "t.csv", "--target", "label", "-q"]) == 0
    assert mercer.load("t.mercer").classes_.tolist() == classes


def test_a_label_with_a_line_break(folder, capsys):
    table(folder / "t.csv", ["a\nb", "c"] * 30)
    error = told(["train", "t.csv", "--target", "label"], capsys, 1)
    assert "row 1 of the column 'label' holds 'a\\nb'" in error
    X = np.arange(20.0)[:, None]
    mercer.save(mercer.SVC().fit(X, np.where(X[:, 0] > 9, "a\nb", "c")), "m.mercer")  # Python allows it
    (folder / "x.csv").write_text("x\n1\n18\n")
    main(["predict", "x.csv", "m.mercer", "o", "--plain"])
    assert (folder / "o").read_text().splitlines() == ["c", '"a\\nb"']


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b,label\n", "t.csv holds no rows"),
        (b"a,b,label\n1_0,2,x\n3,4,y\n5,6,x\n7,8,y\n", "row 1 of the column 'a' holds '1_0'"),
        ("a,b,label\n1,2,\u043c\u0438\u0440\n".encode("cp1251"), "t.csv:2: byte 0xec is not UTF-8; name the encoding"),
        (b'a,b,label\n1,2,"' + b"x" * 140_000 + b'"\n', "t.csv:2: field larger than field limit"),
    ],
)
@pytest.mark.parametrize("command", ["train", "predict"])
def test_files_that_cannot_be_read(content, message, command, folder, capsys):
    mercer.save(mercer.SVC().fit([[0.0, 1], [1, 0]], [0, 1]), "m.mercer")
    (folder / "t.csv").write_bytes(content)
    words = ["train", "t.csv"] if command == "train" else ["predict", "t.csv", "m.mercer"]
    assert message in told([*words, "--target", "label"], capsys, 1)


@pytest.mark.parametrize("form", ["libsvm", "csv", "npz"])
def test_a_pipe(form, folder):
    """What bash's <(command) gives: a file that can be read once, from the beginning to the end."""
    if form == "npz":
        np.savez("data", X=np.arange(60.0)[:, None], y=np.arange(60) > 20)
        os.rename("data.npz", "data")
    elif form == "csv":
        table(folder / "data", ["0", "1"] * 30)
    else:
        (folder / "data").write_text("\n".join(f"{i % 2} 1:{i % 2} 2:{i}" for i in range(60)))
    words = ["--target", "label"] if form == "csv" else []
    os.mkfifo("pipe")
    content = (folder / "data").read_bytes()
    writer = threading.Thread(target=lambda: (folder / "pipe").write_bytes(content), daemon=True)
    writer.start()
    assert main(["train", "pipe", "m.mercer", "--format", form, "-q", *words]) == 0
    writer.join()
    assert mercer.load("m.mercer").classes_.tolist() in ([0, 1], [False, True])


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["tarin"], "did you mean train?"), (["train", "--gama", "1", "x"], "did you mean --gamma?"), (["xyz"], "'xyz'")],
)
def test_a_slip_of_the_pen(words, meant, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert meant in capsys.readouterr().err


def test_every_wrong_usage_has_the_same_exit_code(capsys):
    for words in (["train", "-x", "1"], ["train", "-c"], ["train", "--C", "abc"], ["train", "-s", "9"], ["tarin"], []):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
