"""The memory of a fit: what it may take beyond the data, and that it gives it back."""

import pytest

from reference.child import MEASURABLE, run_python

needs_proc = pytest.mark.skipif(not MEASURABLE, reason="memory is measured through Linux's /proc")


@needs_proc
def test_three_hundred_fits_leave_no_memory_behind():
    grown = run_python(
        """
        import gc
        from reference.child import resident
        from sklearn.datasets import load_iris
        from mercer import SVC
        X, y = load_iris(return_X_y=True)
        def fits(k):
            for i in range(k):
                SVC(C=1.0 + i % 7, kernel=("rbf", "linear", "poly")[i % 3]).fit(X, y).predict(X)
            gc.collect()
        fits(60)
        before = resident()
        fits(300)
        print(resident() - before)
        """
    )
    assert float(grown) < 5


@needs_proc
def test_budget_is_kept():
    """The matrix of 12,000 rows takes 1.2 GB; a fit with cache_size=50 stays near 50 MB beyond the data."""
    grown = run_python(
        """
        import numpy as np
        from reference.child import growth
        from mercer import SVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12_000, 5)); y = (X[:, 0] + 0.5 * rng.normal(size=12_000) > 0).astype(int)
        SVC(cache_size=50).fit(X[:3500], y[:3500])
        model = SVC(cache_size=50, tol=1e-2)
        print(growth(lambda: model.fit(X, y)))
        assert model.converged_
        """
    )
    assert float(grown) < 80


@needs_proc
@pytest.mark.parametrize("machine", ["LinearSVC(max_iter=1)", "RLSRegressor(kernel='linear')"])
def test_linear_machines_copy_no_large_array(machine):
    """X takes 50 MB, in an order of its own that the machines do not read it in; half of it would be a float32 copy."""
    grown = run_python(
        """
        import sys, warnings
        import numpy as np
        import mercer
        from reference.child import growth
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        X = rng.random((12_500, 500)); y = rng.integers(0, 2, len(X))
        machine = eval("mercer." + sys.argv[1])
        machine.fit(X[:2000], y[:2000])
        print(growth(lambda: machine.fit(X, y)))
        """,
        machine,
    )
    assert float(grown) < 45


@needs_proc
def test_float32_data_are_never_float64_as_a_whole():
    """They are prepared and laid out as columns in float32, and nothing else is as large as they are."""

    def megabytes(kind):
        return float(
            run_python(
                """
                import sys, warnings
                import numpy as np
                from reference.child import growth
                from mercer import SVC
                warnings.simplefilter("ignore")
                rng = np.random.default_rng(0)
                X = rng.normal(size=(80_000, 100)).astype(sys.argv[1]); y = rng.integers(0, 2, len(X))
                SVC(max_iter=1).fit(X[:4000], y[:4000])
                print(growth(lambda: SVC(cache_size=20, max_iter=1).fit(X, y)))  # as far as one step on any machine
                """,
                kind,
            )
        )

    one_copy = 80_000 * 100 * 4 / 2**20
    assert megabytes("float32") < 3.5 * one_copy  # one in float64 would make it more than 4
    assert megabytes("float64") < 3.5 * one_copy  # where one in float64 is the data themselves
