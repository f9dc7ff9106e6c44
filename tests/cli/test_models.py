"""``mercer inspect`` and ``mercer convert``."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import mercer
from cli.commands import run
from mercer import SVC
from mercer.files.libsvm_model import read_libsvm_model

LIGHT = """SVM-light Version V6.02
0 # kernel type
3 # kernel parameter -d
1 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
2 # highest feature index
2 # number of training documents
3 # number of support vectors plus 1
0 # threshold b, each following line is a SV (starting with alpha*y)
-0.5 1:-1 #
0.5 1:1 #
"""


pytestmark = pytest.mark.usefixtures("folder")


def inspected(path, capsys):
    run("inspect", "--json", path)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "weight"),
    [({"theta": 0.01}, None), ({}, "drawn"), ({"slack": "l2"}, None), ({"class_weight": {0: 3.0}}, None)],
)
def test_inspect_counts_free_vectors_by_their_own_bounds(options, weight, capsys):
    """Each sample's bound is its own C_i, whatever the fit made it of."""
    X, y = load_breast_cancer(return_X_y=True)
    X, weight = X / X.std(axis=0), None if weight is None else np.random.default_rng(0).integers(1, 4, len(y))
    model = SVC(kernel="linear", tol=1e-6, **options).fit(X, y, sample_weight=weight)
    mercer.save(model, "m.mercer")
    facts, margins = inspected("m.mercer", capsys), model.margins(X, y)
    assert facts["free_support_vectors"] == len(margins.free) > 0
    assert facts["bounded_support_vectors"] == len(margins.bounded)
    assert (len(margins.bounded) > 0) == ("slack" not in options)


def test_inspect_names_classes_against_the_rest(capsys):
    X, y = load_iris(return_X_y=True)
    mercer.save(SVC(multiclass="ovr").fit(X, y), "m.mercer")
    facts = inspected("m.mercer", capsys)
    assert list(facts["margins"]) == ["0", "1", "2"]


def test_inspect_a_trained_machine(capsys):
    X, y = load_breast_cancer(return_X_y=True)
    model = SVC(kernel="linear", C=0.01).fit(X / X.std(axis=0), y)
    mercer.save(model, "m.mercer")
    facts = inspected("m.mercer", capsys)
    assert facts["machine"] == "SVC"
    assert facts["kernel"] == "Linear()"
    assert facts["parameters"]["C"] == 0.01
    assert facts["margin"] == pytest.approx(1 / np.linalg.norm(model.coef_), rel=1e-6)
    assert facts["bounded_support_vectors"] == int((np.abs(model.dual_coef_) == 0.01).sum())
    assert facts["free_support_vectors"] + facts["bounded_support_vectors"] == facts["total_support_vectors"]
    assert facts["certificate"]["gap"] == model.certificate_.gap
    assert facts["certificate"]["verdict"].startswith("optimal to within")
    assert facts["prediction"]["kernel values per row"] == facts["total_support_vectors"]
    assert facts["prediction"]["microseconds per row"] > 0
    assert facts["retraining"]["rows"] == len(y)
    run("inspect", "m.mercer")
    assert "verdict                        optimal to within" in capsys.readouterr().out


def test_inspect_says_what_theory_says(capsys):
    """With the training data, the numbers of model.insight."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.std(axis=0)
    model = SVC(bias=False, gamma=0.03).fit(X, y)
    mercer.save(model, "m.mercer")
    np.savez("d.npz", X=X, y=y)
    expected = model.insight(X, y, delta=0.1)
    run("inspect", "m.mercer", "d.npz", "--delta", "0.1", "--json")
    (told,) = json.loads(capsys.readouterr().out)["insight"]
    assert told["risks"] == pytest.approx(dict(expected.risks))
    assert told["bounds"]["soft margin"]["value"] == pytest.approx(expected.bounds["soft margin"].value)
    assert told["bounds"]["soft margin"]["applies"] is None
    assert told["n_support"] == len(model.support_)
    assert told["kernel_values"] == model.n_kernel_values_
    assert told["kernel_values_multiple"] == pytest.approx(model.n_kernel_values_ / (len(y) * len(model.support_)))
    run("inspect", "m.mercer", "d.npz")
    text = capsys.readouterr().out
    for words in (
        "Rademacher complexity",
        "times that",
        "(vacuous)",
        "f has no bias, or one that its norm includes: holds",
    ):
        assert words in text


@pytest.mark.parametrize("labels", ["abc", "012", ["-1", "0", "10"]])
def test_inspect_says_what_theory_says_of_tables_and_pairs(folder, capsys, labels):
    X, y = load_iris(return_X_y=True)
    rows = [",".join([*map(str, x), labels[k]]) for x, k in zip(X, y, strict=True)]
    (folder / "t.csv").write_text("\n".join(["p,q,r,s,kind", *rows]))
    run("train", "t.csv", "m.mercer", "--target", "kind", "--machine", "c_svc", "--quiet")
    capsys.readouterr()
    run("inspect", "m.mercer", "t.csv", "--json")
    told = json.loads(capsys.readouterr().out)["insight"]
    assert [one["name"] for one in told] == [f"{labels[i]} against {labels[j]}" for i, j in [(0, 1), (0, 2), (1, 2)]]
    run("inspect", "m.mercer", "t.csv", "--target", "p", code=1)
    (folder / "few.csv").write_text("p,q,r,s\n1,2,3,4\n")
    run("inspect", "m.mercer", "few.csv", code=1)
    assert "--target" in capsys.readouterr().err


def test_inspect_other_formats(folder, capsys):
    X, y = load_iris(return_X_y=True)
    mercer.save(SVC().fit(X, y), "m.mercer")
    run("convert", "m.mercer", "m.model")
    capsys.readouterr()
    facts = inspected("m.model", capsys)
    assert facts["labels"] == [0, 1, 2]
    assert set(facts["margins"]) == {"0 against 1", "0 against 2", "1 against 2"}
    (folder / "light").write_text(LIGHT)
    assert inspected("light", capsys)["margin"] == pytest.approx(1.0)
    (folder / "linear").write_text("solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n3 \n4 \n")
    assert inspected("linear", capsys)["norm_of_w"] == 5


MACHINES = {
    "duplicates": lambda X, y: SVC().fit(X, y),  # two rows of iris are the same
    "weights by number": lambda X, y: SVC(class_weight={np.int64(0): 2.0}).fit(X, y),
    "one against the rest": lambda X, y: SVC(multiclass="ovr").fit(X, y),
    "joint": lambda X, y: SVC(multiclass="crammer-singer").fit(X, y),
    "precomputed": lambda X, y: SVC(kernel="precomputed").fit(X @ X.T, y),
    "hard margin": lambda X, y: SVC(C=np.inf).fit(X, y == 0),
    "quantiles": lambda X, y: mercer.QuantileSVR([0.1, 0.9]).fit(X, X[:, 0]),
    "novelty": lambda X, y: mercer.SVDD().fit(X),
    "linear": lambda X, y: mercer.LinearSVC().fit(X, y),
    "linear, two classes": lambda X, y: mercer.LinearSVC().fit(X, y == 0),
    "linear regression": lambda X, y: mercer.LinearSVR().fit(X, X[:, 0]),
    "stochastic": lambda X, y: mercer.PegasosSVC(random_state=0).fit(X, y),
    "least squares": lambda X, y: mercer.RLSRegressor().fit(X, X[:, :2]),
    "least squares, classes": lambda X, y: mercer.RLSClassifier(kernel="linear").fit(X, y),
    "chosen λ": lambda X, y: mercer.RLSClassifierCV().fit(X, y),
    "landmarks": lambda X, y: mercer.NystromRLS(random_state=0).fit(X, X[:, 0]),
    "any loss": lambda X, y: mercer.KernelMachineClassifier().fit(X, y),
}


@pytest.mark.parametrize("case", MACHINES)
def test_every_machine_is_inspected_and_predicts(case, capsys):
    X, y = load_iris(return_X_y=True)
    model = MACHINES[case](X, y)
    mercer.save(model, "m.mercer")
    facts = inspected("m.mercer", capsys)
    assert facts["machine"] == type(model).__name__
    if hasattr(model, "support_"):
        assert facts["total_support_vectors"] == len(model.support_) == int(model.n_support_.sum())
    if hasattr(model, "certificate_"):
        assert facts["certificate"]["gap"] == model.certificate_.gap
    run("inspect", "m.mercer")
    assert "certificate" in capsys.readouterr().out
    rows = X @ X.T if case == "precomputed" else X
    np.savez("rows.npz", X=rows)
    run("predict", "--json", "rows.npz", "m.mercer")
    np.testing.assert_array_equal(json.loads(capsys.readouterr().out)["predictions"], model.predict(rows))
    run("predict", "rows.npz", "m.mercer", "out", "-q")
    if np.asarray(model.predict(rows)).dtype.kind == "f":
        np.testing.assert_array_equal(np.loadtxt("out"), model.predict(rows))
    assert np.loadtxt("out", dtype=str, ndmin=2).shape[0] == len(X)


def test_convert_there_and_back(folder, capsys):
    X, y = load_iris(return_X_y=True)
    model = SVC(C=3).fit(X, y)
    mercer.save(model, "a.mercer")
    run("convert", "a.mercer", "b.model")
    run("convert", "b.model", "c.mercer", "--features", 4)
    run("convert", "c.mercer", "d.model", "--to", "libsvm")
    assert (folder / "b.model").read_bytes() == (folder / "d.model").read_bytes()
    np.testing.assert_array_equal(mercer.load("c.mercer").predict(X), model.predict(X))
    assert "saved d.model in LIBSVM format" in capsys.readouterr().out


def test_convert_from_svmlight(folder):
    (folder / "light").write_text(LIGHT)
    run("convert", "light", "m.model", "--quiet")
    model = read_libsvm_model("m.model")
    np.testing.assert_array_equal(model.coefficients[:, 0], [0.5, -0.5])
    run("convert", "light", "m.mercer", "--quiet")
    np.testing.assert_array_equal(mercer.load("m.mercer").predict([[2.0, 0.0][:1]]), [1])


def test_convert_to_onnx():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, y)
    mercer.save(model, "a.mercer")
    run("convert", "a.mercer", "a.onnx", "--quiet")
    (label,) = runtime.InferenceSession("a.onnx", providers=["CPUExecutionProvider"]).run(["label"], {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    run("convert", "a.mercer", "b.onnx", "--quiet", "--input", "float32")
    session = runtime.InferenceSession("b.onnx", providers=["CPUExecutionProvider"])
    (label,) = session.run(["label"], {"X": X.astype(np.float32)})
    np.testing.assert_array_equal(label, model.predict(X))


def test_what_cannot_be_converted(folder, capsys):
    run("train", "-q")
    run("convert", "model.mercer", "m.model", code=1)
    assert "standardises its columns first, which a LIBSVM file cannot hold" in capsys.readouterr().err
    (folder / "junk").write_text("hello")
    run("convert", "junk", "m.mercer", code=1)
    assert "junk is not a model" in capsys.readouterr().err
    run("inspect", "nothing", code=1)
    assert "No such file" in capsys.readouterr().err


def test_a_model_of_another_program_does_not_record_its_price(folder, capsys):
    X, y = load_iris(return_X_y=True)
    own = SVC(C=100.0).fit(X, y)
    mercer.save(own, "own.mercer")
    run("convert", "own.mercer", "there.model")
    run("convert", "there.model", "back.mercer")
    capsys.readouterr()
    assert inspected("own.mercer", capsys)["parameters"]["C"] == 100.0
    back = inspected("back.mercer", capsys)["parameters"]
    assert {back[name] for name in ("C", "tol", "class_weight")} == {"not recorded"}
    run("inspect", "back.mercer")
    assert "not recorded" in capsys.readouterr().out


def test_inspect_rounds_what_a_person_reads(folder, capsys):
    mercer.save(SVC(gamma=0.24999999999999994).fit([[0.0], [1.0]], [0, 1]), "m.mercer")
    run("inspect", "m.mercer")
    assert "gamma=0.25)" in capsys.readouterr().out
    assert "0.24999999999999994" in inspected("m.mercer", capsys)["kernel"]
