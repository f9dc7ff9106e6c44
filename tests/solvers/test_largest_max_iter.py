"""Ask every machine for as many iterations as an int can hold: its limit must not overflow, and the fit must end."""

import inspect
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import mercer

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
LABELS, NUMBERS = np.where(rng.random(60) > 0.5, 1, -1), rng.normal(size=60)
MACHINES = {
    name: machine
    for name in mercer.__all__
    if inspect.isclass(machine := getattr(mercer, name)) and "max_iter" in inspect.signature(machine).parameters
}


# PegasosSVC makes every step that it is asked for.
@pytest.mark.parametrize("name", [name for name in MACHINES if name != "PegasosSVC"])
def test_a_fit_ends(name):
    machine = MACHINES[name](max_iter=sys.maxsize)
    target = LABELS if machine.__sklearn_tags__().estimator_type == "classifier" else NUMBERS
    assert len(machine.fit(X, target).predict(X)) == 60


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("most", [10**15, 10**17, sys.maxsize])
def test_the_descent_of_linear_machines_ends(loss, most):
    wide = sp.random(60, 100, 0.05, format="csr", random_state=0)
    for given in (X, wide):
        assert mercer.LinearSVC(loss=loss, solver="dual", max_iter=most).fit(given, LABELS).converged_
