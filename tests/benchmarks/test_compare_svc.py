"""The benchmark harness on tiny data: its truth agrees with the certificate, its tables come out."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.is_dir():  # a source distribution has none
    pytest.skip("benchmarks are not here", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

import compare_svc  # noqa: E402
import harness  # noqa: E402
import instruments  # noqa: E402
import peers  # noqa: E402
import svc_report  # noqa: E402
import svc_small  # noqa: E402
import tasks  # noqa: E402
import truth  # noqa: E402

import mercer  # noqa: E402
from mercer.certificates.dual import certify_dual  # noqa: E402
from mercer.places import gram_for  # noqa: E402
from mercer.problems.classification import soft_margin  # noqa: E402

TASK = tasks.mixture(300, n_test=50)


def fitted(setting, **options):
    both, absent = peers.assemble(["mercer", "sklearn"], threads=2)
    assert not absent
    return [(one, one.fit(one.prepare(TASK.X, TASK.y), setting, **options)) for one in both.values()]


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_truth_is_what_the_certificate_says(kernel):
    setting = truth.Setting(2.0, TASK.gamma(), kernel, coef0=1.0)
    (ours, model), (peer, other) = fitted(setting)
    found, of_peer = truth.judge(setting, TASK.X, TASK.y, [ours.duals(model), peer.duals(other)])
    assert found.violation == pytest.approx(model.certificate_.violation, abs=1e-9)
    assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    assert found.infeasibility < 1e-9
    assert of_peer.violation < 1.01e-3
    assert of_peer.dual == pytest.approx(found.dual, rel=1e-4)


def test_truth_of_an_answer_far_from_optimal():
    setting = truth.Setting(1.0, TASK.gamma())
    beta = 0.1 * TASK.y * (np.arange(300) % 3 > 0)
    C = np.linspace(0.5, 2.0, 300)
    duals = truth.Duals(np.argsort(TASK.y, kind="stable"), beta[np.argsort(TASK.y, kind="stable")][None])
    found = truth.judge(setting, TASK.X, TASK.y, [duals], C)[0]
    gram = gram_for(mercer.kernels.Gaussian(gamma=setting.gamma), TASK.X)
    certificate, _ = certify_dual(soft_margin(TASK.y.astype(float), C), gram, beta)
    assert found.violation == pytest.approx(certificate.violation)
    K = rbf_kernel(TASK.X, gamma=setting.gamma)
    assert found.dual == pytest.approx(TASK.y @ beta - 0.5 * beta @ K @ beta)
    assert certificate.dual < found.dual  # coefficients that miss the equality cannot claim their whole value
    assert found.infeasibility == pytest.approx(abs(beta.sum()))


def test_truth_of_several_classes():
    y = np.array([5, 2, 9])[np.arange(300) % 3]
    setting = truth.Setting(1.0, TASK.gamma())
    ours = peers.assemble(["mercer"], threads=2)[0]["mercer"]
    model = ours.fit(ours.prepare(TASK.X, y), setting)
    found = truth.judge(setting, TASK.X, y, [ours.duals(model)])[0]
    assert found.violation == pytest.approx(model.certificate_.violation, abs=1e-9)
    assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-9)


def test_a_fit_seen_from_inside():
    task = tasks.mixture(1500)  # of fewer samples, all of K serves for steps and certificate
    setting = truth.Setting(1.0, task.gamma())
    ours = peers.assemble(["mercer"], threads=2)[0]["mercer"]
    prepared = ours.prepare(task.X, task.y)
    inside = instruments.inspect_fit(lambda: ours.fit(prepared, setting), repeats=1)
    assert inside["n"] == 1500
    assert inside["nSV"] == len(ours.fit(prepared, setting).support_)
    assert inside["certificates"] >= 1
    assert inside["certificate_units"] >= 0.5  # a value between two support vectors serves both
    assert inside["units"] > 0
    assert inside["bound"] > 0


def test_turns_are_taken_and_failures_kept():
    order = []
    calls = {"a": lambda: order.append("a"), "b": lambda: order.append("b"), "c": lambda: 1 / 0}
    timings = harness.interleave(calls, repeats=1)
    assert order == ["a", "b"] * 3
    assert "ZeroDivisionError" in timings["c"].error
    assert harness.growth_exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2.0)


def test_tables_from_a_tiny_run(tmp_path):
    file = tmp_path / "results.json"
    arguments = ["--quick", "--rows", "300", "--sets", "mixture", "--peers", "sklearn,mercer32", "--json", str(file)]
    options = compare_svc.parse([*arguments, "--sections", "fit,predict,threads"])
    text = svc_report.report(compare_svc.run(options))
    results = json.loads(file.read_text())
    assert "| mixture | generated | 300 × 20 |" in text
    assert "Distance to the n × nSV bound" in text
    assert "serial share, 2" in text
    assert results["sections"]["fit"][0]["competitors"]["mercer"]["violation"] <= 1e-3
    table = svc_report.readme(results)
    assert "× scikit-learn" in table
    assert "geometric mean" in table


@pytest.mark.thorough
def test_every_set_has_a_standardised_and_a_raw_form(tmp_path):
    rng = np.random.default_rng(0)
    X, y = 3.0 + 2.0 * rng.normal(size=(400, 5)), rng.integers(2, size=400)
    np.savez(tmp_path / "spam.npz", X=X, y=y, Xtest=X[:50], ytest=y[:50])
    file = tmp_path / "results.json"
    arguments = ["--quick", "--data", str(tmp_path), "--sets", "spam", "--peers", "sklearn", "--json", str(file)]
    compare_svc.run(compare_svc.parse([*arguments, "--sections", "fit,predict"]))
    results = json.loads(file.read_text())
    assert [record["form"] for record in results["sections"]["fit"]] == ["standardised", "raw"]
    table = svc_report.readme(results)
    assert table.index("Standardised data") < table.index("Raw data")
    assert table.count("geometric mean") == 2
    assert results["machine"]["cpu"] in table
    assert results["machine"]["level"] in table
    standardised, raw = (tasks.load(tmp_path, "spam", form=form).X for form in tasks.FORMS)
    np.testing.assert_allclose(standardised.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(raw, X)


@pytest.mark.thorough
def test_small_data_and_the_serial_share():
    competitors = peers.assemble(["mercer", "sklearn"], threads=2)[0]
    record = svc_small.measure("iris", competitors, 1)
    assert set(record["seconds"]) == {"fit", "one row", "all rows"}
    assert all(seconds > 0 for each in record["seconds"].values() for seconds in each.values())
    assert "iris" in svc_report._small([record])
    assert harness.serial_share(lambda: time.sleep(0.05), 2) == 1.0


def test_unknown_forms_and_sections_are_refused():
    with pytest.raises(SystemExit):
        compare_svc.parse(["--forms", "scaled"])
    with pytest.raises(SystemExit):
        compare_svc.parse(["--sections", "fits"])
