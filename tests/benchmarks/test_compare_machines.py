"""The comparison of the other machines on tiny data: its truth is the certificate's, its tables come out."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.is_dir():  # a source distribution has none
    pytest.skip("benchmarks are not here", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

import compare_machines  # noqa: E402

import mercer  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3))
T = np.sin(X[:, 0]) + 0.1 * rng.normal(size=150)


@pytest.mark.parametrize("machine", compare_machines.MACHINES)
def test_truth_is_what_the_certificate_says(machine):
    target = np.where(T > 0, 1, -1) if machine == "NuSVC" else T
    model = getattr(mercer, machine)(gamma=0.3, **compare_machines._OPTIONS[machine]).fit(X, target)
    beta = compare_machines.duals(machine, model, 150, target)
    found = compare_machines.judge(machine, X, target, 0.3, beta)
    unit = model.equivalent_C_ if machine == "NuSVC" else 1.0  # its certificate is in the scale of f
    assert unit * found["violation"] == pytest.approx(model.certificate_.violation, abs=1e-8)
    assert unit**2 * found["dual"] == pytest.approx(model.certificate_.dual, rel=1e-8)
    assert found["infeasibility"] < 1e-8
    worse = compare_machines.judge(machine, X, target, 0.3, 0.9 * beta)
    assert worse["violation"] > 2e-3
    assert worse["infeasibility"] > 1e-3 or machine == "SVR"


def test_a_race_makes_a_table(tmp_path, capsys):
    np.savez(tmp_path / "kin40k_reg.npz", X=X, y=T)
    options = ["--data", str(tmp_path), "--only", "SVR", "--sets", "kin40k_reg", "--quick", "--json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_machines.harness, "same_threads_for_all", lambda threads: None)
        compare_machines.main([*options, str(tmp_path / "out.json")])
    text = capsys.readouterr().out
    assert "### SVR" in text
    assert "Geometric mean of the ratios" in text
    (record,) = json.loads((tmp_path / "out.json").read_text())["records"]
    assert record["sklearn"]["violation"] < 1.01e-3
    assert record["mercer"]["violation"] < 1.01e-3
