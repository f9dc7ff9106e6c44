"""The command line on model files that hold pipelines: it works, or says in one line why not."""

import json
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from mercer.cli.main import main
from reference.pipelines import IRIS, NAMES, PIPELINES, fitted


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words):
    """The exit code, and what was printed."""
    capsys.readouterr()
    try:
        code = main(list(words))
    except SystemExit as exit:
        code = exit.code
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("name", PIPELINES)
def test_every_pipeline_is_inspected_and_converted(name, capsys):
    if name in ("mixed", "selected", "ordinal"):
        pytest.importorskip("pandas")
    model, rows = fitted(name)
    mercer.save(model, "m.mercer")
    code, out, _ = run(capsys, "inspect", "m.mercer")
    assert code == 0
    assert "machine" in out
    code, out, _ = run(capsys, "inspect", "m.mercer", "--json")
    assert json.loads(out)["format"] == ".mercer"
    assert run(capsys, "convert", "m.mercer", "again.mercer")[0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(mercer.load("again.mercer").predict(rows), model.predict(rows))
    for target in ("m.model", *(["m.onnx"] if find_spec("onnx") else [])):
        code, _, err = run(capsys, "convert", "m.mercer", target)
        holds = name == "scaled" and target == "m.onnx"
        assert code == (0 if holds else 1)
        assert len(err.strip().splitlines()) == (0 if code == 0 else 1)


def test_inspect_tells_what_a_model_is_made_of(capsys):
    mercer.save(fitted("voting")[0], "m.mercer")
    facts = json.loads(run(capsys, "inspect", "m.mercer", "--json")[1])
    assert facts["model"] == "VotingClassifier(SVC, Pipeline(StandardScaler, LinearSVC), RLSClassifier)"
    assert [facts[f"machine {n}"]["class"] for n in (1, 2, 3)] == ["SVC", "LinearSVC", "RLSClassifier"]
    mercer.save(fitted("nested")[0], "m.mercer")
    facts = json.loads(run(capsys, "inspect", "m.mercer", "--json")[1])
    union = "FeatureUnion(Pipeline(MinMaxScaler, FeatureUnion(TruncatedSVD, FunctionTransformer)), PCA, Normalizer)"
    assert facts["steps"] == ["SimpleImputer", union, "NuSVC"]


@pytest.mark.parametrize("name", ["reduced", "voting", "calibrated", "soft voting"])
def test_predict_answers_as_python_does(name, capsys):
    model, _ = fitted(name)
    mercer.save(model, "m.mercer")
    np.savetxt("iris.csv", IRIS, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    code, out, _ = run(capsys, "predict", "iris.csv", "m.mercer", "--plain")
    assert code == 0
    assert out.split() == model.predict(IRIS).tolist()


def test_columns_by_name(capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(IRIS, columns=["a", "b", "c", "d"])
    columns = make_column_transformer((StandardScaler(), ["d", "a"]), (MinMaxScaler(), ["c"]))
    model = make_pipeline(columns, mercer.SVC()).fit(frame, NAMES)
    mercer.save(model, "m.mercer")
    frame[["d", "c", "b", "a"]].to_csv("other_order.csv", index=False)
    code, out, _ = run(capsys, "predict", "other_order.csv", "m.mercer", "--plain")
    assert code == 0
    assert out.split() == model.predict(frame).tolist()


def test_texts_need_python(capsys):
    mercer.save(fitted("words")[0], "m.mercer")
    np.savetxt("iris.csv", IRIS, delimiter=",", header="a,b,c,d", comments="")
    code, _, err = run(capsys, "predict", "iris.csv", "m.mercer")
    assert code == 1
    assert "takes texts, not columns of numbers" in err
    assert len(err.splitlines()) == 1


def test_probabilities_stand_beside_the_rows(capsys):
    model = fitted("calibrated")[0]
    mercer.save(model, "m.mercer")
    np.savetxt("iris.csv", IRIS, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    code, out, _ = run(capsys, "predict", "-b", "1", "iris.csv", "m.mercer")
    assert code == 0
    header, *rows = (line.split(",") for line in out.splitlines())
    assert header == ["a", "b", "c", "d", "predicted", "probability", *(f"p({name})" for name in model.classes_)]
    p = model.predict_proba(IRIS)
    np.testing.assert_allclose(np.array([row[6:] for row in rows], dtype=float), p, rtol=1e-5)
    np.testing.assert_allclose([float(row[5]) for row in rows], p.max(axis=1), rtol=1e-5)
    np.savez("iris.npz", X=IRIS)
    code, _, err = run(capsys, "predict", "-b", "1", "iris.npz", "m.mercer")
    assert code == 1
    assert "predict_proba" in err
