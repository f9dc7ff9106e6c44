"""A Gram that cannot bound its errors leaves every proof to another one: nobody asks it, and no claim is false."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import mercer
from claims.test_false_claims import CHECKS, LINEAR, broken, problems
from mercer.places import choose as places
from mercer.places.factor import HostAlgebra
from mercer.places.host.field import HostField
from mercer.places.host.joint_field import HostJointField
from mercer.places.host.kernel_matrix import KernelMatrix

pytestmark = pytest.mark.filterwarnings("ignore")


class Careless(HostAlgebra):
    """K with errors of a millionth, of which it says nothing."""

    levels = precisions = (np.float64,)
    linear = None

    def __init__(self, proof, rows=None):
        self.proof, self._rows = proof, np.arange(proof.n) if rows is None else rows

    def __getattr__(self, name):
        if name in ("product_bound", "errors", "entry_bounds"):
            raise AssertionError(f"{name} was asked of a Gram that leaves proofs to another one")
        return getattr(self.proof, name)

    def block(self, I, J):
        return self.proof.block(I, J) * (1 + 1e-6 * np.cos(np.outer(self._rows[I] + 1, self._rows[J] + 1)))

    def full(self, dtype=np.float64):
        everything = np.arange(self.n)
        return self.block(everything, everything).astype(dtype)

    def product(self, coefficients, rows=None, dtype=np.float64):
        everything = np.arange(self.n)
        return self.block(everything if rows is None else rows, everything) @ coefficients

    products = product

    def view(self, rows):
        return Careless(self.proof.view(rows), self._rows[rows])

    def copied(self, rows, budget):
        return Careless(self.proof.copied(rows, budget), self._rows[rows])

    def streamed(self):
        return Careless(self.proof.streamed(), self._rows)

    def field(self, problem, beta=None, u=None, dtype=np.float64):
        return HostField(self, problem, problem.feasible_start() if beta is None else beta, u)

    def joint_field(self, problem, beta, u, dtype=np.float64):
        return HostJointField(self, problem, beta, u, dtype)

    def pairs(self, layout, n_threads):
        return None


class Maker:
    @staticmethod
    def of(*arguments):
        return Careless(KernelMatrix.of(*arguments))


@pytest.fixture(autouse=True)
def careless():
    with patch.object(places, "KernelMatrix", Maker):
        yield


@pytest.mark.parametrize("machine", [name for name in CHECKS if name not in LINEAR])
def test_no_claim_is_false(machine):
    @seed(7)
    @settings(max_examples=3, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(problem=problems(machine, "core"))
    def attempt(problem):
        assert not broken(problem)

    attempt()


rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
three = np.digitize(X[:, 0], [-0.5, 0.5])
GRID = {"C": [1, 10, 100], "gamma": [0.1, 1]}
TOOLS = {
    "tune": lambda: mercer.tune(mercer.SVC(), X, y, grid=GRID),
    "tune pairs": lambda: mercer.tune(mercer.SVC(), X, three, grid=GRID),
    "leave_one_out": lambda: mercer.leave_one_out(mercer.SVC().fit(X, y), X, y),
    "svm_path": lambda: mercer.svm_path(X, y, C_max=4.0),
    "certify": lambda: mercer.certify(mercer.SVC(), X, y, np.where(y == 1, 1 / y.sum(), 1 / (60 - y.sum()))),
    "partial_fit": lambda: mercer.SVC(warm_start=True).fit(X, y).partial_fit(X[:5] + 1, y[:5]),
    "chunking": lambda: mercer.SVC(solver="chunking").fit(X, y),
    "pegasos": lambda: mercer.PegasosSVC(kernel="rbf", random_state=0).fit(X, y),
}


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_asks_who_proves(name):
    TOOLS[name]()
