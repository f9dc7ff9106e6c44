"""A command loads what it needs: counted in modules, since seconds depend on the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mercer
from mercer import estimators
from reference.child import run_python

_LIBRARIES = {"numpy", "scipy", "sklearn", "pandas", "joblib"}
_TEXT = "+1 1:0.7 2:1\n-1 1:0.5 2:-1\n+1 1:0.1 2:0.8\n-1 1:0.4 2:-0.7\n"


def modules_after(code: str, cwd: Path) -> set[str]:
    """The modules that a fresh process has loaded when `code` has run."""
    told = f"{code}\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, cwd=cwd, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*words: str) -> str:
    return f"from mercer.cli.main import main\ntry: main({list(words)})\nexcept SystemExit as end: assert end.code == 0"


# A bare interpreter has loaded some 60 modules, and argparse with what we say adds as many.
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["train", "--help"]], ids=" ".join)
def test_words_alone_load_no_library(words: list[str], tmp_path: Path) -> None:
    loaded = modules_after(command(*words), tmp_path)
    assert not loaded & _LIBRARIES
    assert len(loaded) < 200, sorted(loaded)


def test_training_on_text_loads_a_part_of_scikit_learn(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(_TEXT)
    loaded = modules_after(command("train", "-q", "data"), tmp_path)
    assert (tmp_path / "data.model").exists()
    assert {"numpy", "scipy.sparse", "sklearn.base"} <= loaded
    unwanted = "pandas scipy.stats._stats_py scipy.special._ufuncs scipy.optimize sklearn.metrics sklearn.preprocessing"
    assert not loaded & set(unwanted.split())
    assert not [name for name in loaded if name.startswith("mercer.displays")]
    assert len(loaded) < 1150, len(loaded)  # 930; with all of scikit-learn's own imports it was 2,100


def test_what_was_left_out_is_there_when_it_is_used(tmp_path: Path) -> None:
    code = (
        "from mercer.cli.quick_start import import_scikit_learn\nimport_scikit_learn()\n"
        "import sklearn.base, scipy.stats\n"
        "import sys; assert not [one for one in sys.meta_path if type(one).__module__.startswith('mercer')]\n"
        "from scipy.special import expit\nassert scipy.stats.norm.cdf(0) == 0.5 and expit(0) == 0.5\n"
        "import numpy as np\nfrom sklearn.preprocessing import StandardScaler, SplineTransformer\n"
        "try: import pandas as pd\nexcept ImportError: pass\n"
        "else: assert StandardScaler().fit(pd.DataFrame({'a': [1.0, 2.0]})).feature_names_in_[0] == 'a'"
    )
    assert "scipy.stats._stats_py" in modules_after(code, tmp_path)


def test_importing_mercer_loads_no_library(tmp_path: Path) -> None:
    assert not modules_after("import mercer", tmp_path) & _LIBRARIES


def test_every_name_is_found_and_listed() -> None:
    for package in (mercer, estimators):
        assert {*package.__all__} <= {*dir(package)}
        for name in package.__all__:
            assert getattr(package, name).__module__.startswith("mercer.")
    assert {"displays", "kernels", "losses", "SVC"} <= {*dir(mercer)}
    assert mercer.SVC is estimators.SVC


# Copies of a process that has the libraries, and nothing of mercer yet: each would take a second to import them.
_COPIES = """
import os, sys
import numpy, scipy.sparse, sklearn.base, sklearn.utils.validation, sklearn.model_selection
assert "mercer" not in sys.modules
for code in sys.argv[1:]:
    copy = os.fork()
    if copy == 0:
        exec(code)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0, code
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process must be copied")
def test_every_room_is_reached_from_mercer_and_everything_at_once() -> None:
    rooms = ["displays", "errors", "estimators", "files", "kernels", "losses", "margins"]
    codes = [f"import mercer\nassert mercer.{name}.__name__ == 'mercer.{name}'" for name in rooms]
    codes.append(
        "import mercer; mercer.displays.DecisionDisplay, mercer.losses.Huber, mercer.kernels.Gaussian, mercer.explain"
    )
    run_python(_COPIES, *codes, "from mercer import *\nSVC, linear_path, Certificate, save, show_versions")


def test_an_unknown_name_is_refused_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'mercer' has no attribute 'SVX'"):
        mercer.SVX  # noqa: B018  # type: ignore[attr-defined]
    assert not hasattr(mercer.estimators, "SVX")
