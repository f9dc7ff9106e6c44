"""Every row of what users of the seed systems looked for has a call that runs, or a reason."""

import importlib.util
import re
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer.cli.main import main
from mercer.files.libsvm_text import write_libsvm

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("peers", DOCS / "peers.py")
peers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peers)
ROWS = [(system["title"], row) for system in peers.systems() for row in system["rows"]]
# What the table held that named each system's gaps, by a word of each.
ASKED = {
    "LIBSVM": ("svmutil", "subset", "checkdata", "-W", "one class", "errors", "svm-toy"),
    "SVMlight": ("ranking", "transduction", "models", "svm_learn", "default C"),
    "GURLS": ("kernels", "semi-supervised", "hold-out", "recursive", "randomised", "conf"),
    "e1071": ("formulas", "cross"),
    "kernlab": (
        *("besseldot", "anovadot", "splinedot", "stringdot", "sigest", "kfa", "rvm", "ranking", "inchol", "ipop"),
        *("couple", "gausspr", "onlearn", "NORMA"),
    ),
    "klaR": ("posterior", "formulas"),
    "svmpath": ("film",),
    "QP solvers": ("CVXOPT", "proof", "matrices"),
}


def command(*words):
    assert main(list(words)) == 0


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    t = X[:, 0] + 0.1 * rng.normal(size=40)
    folder = tmp_path_factory.mktemp("peers")
    write_libsvm(X, 2 * y - 1, folder / "rows")
    np.savetxt(folder / "weights", np.ones(40))
    given = {"X": X, "y": y, "t": t, "qid": np.arange(40) // 10, "csr": sp.csr_array(X), "command": command}
    given["half"] = np.where(np.arange(40) < 20, y, -1)
    given["f"] = mercer.SVC(multiclass="ovr").fit(X, np.arange(40) % 3).decision_function(X)
    given["path"] = mercer.RLSRegressorCV().fit(X[:30], t[:30]).path_
    exec(PRELUDE, given)
    return folder, given


# What the calls name, beside mercer.
PRELUDE = "import mercer, numpy as np, scipy.special"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("system", "row"), ROWS, ids=lambda part: re.sub(r"\W+", " ", str(part))[:40])
def test_a_row_runs_or_says_why_not(system, row, names, monkeypatch):
    folder, given = names
    assert ("call" in row) != ("refused" in row)
    for name in row.get("needs", ()):
        try:
            attrgetter(name)(mercer)
        except AttributeError:
            pytest.skip(f"mercer.{name} is not there yet")
    if "call" in row:
        monkeypatch.chdir(folder)
        eval(row["call"], dict(given))
    else:
        assert len(row["refused"].split()) > 8


@pytest.mark.parametrize("system", ASKED)
def test_no_wish_has_gone(system):
    told = " ".join(row["what"] for title, row in ROWS if title == system)
    assert not [word for word in ASKED[system] if word not in told]


def test_the_page_is_that_of_the_table():
    assert (DOCS / "peers.md").read_text(encoding="utf-8") == peers.page()
