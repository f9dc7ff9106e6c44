"""A command loads what it needs: counted in modules, since seconds depend on the host."""

from __future__ import annotations

import inspect
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


def test_training_on_text_loads_no_more_of_other_libraries_than_every_estimator_needs(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(_TEXT)
    # scikit-learn asks narwhals about y, which loads importlib.metadata (so do newer NumPys). Its callbacks load rich.
    needed = modules_after("import importlib.metadata, sklearn.base, sklearn.callback", tmp_path)
    loaded = modules_after(command("train", "-q", "data"), tmp_path)
    assert (tmp_path / "data.model").exists()
    others = {name for name in loaded - needed if not name.startswith("mercer")}
    assert not [name for name in others if not name.startswith(("lazy_loader", "sklearn.utils."))], others
    own = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("mercer.")}
    assert not own & {f"mercer.{folder}" for folder in ("bayes", "displays", "explain", "selection", "theory", "toy")}


def test_importing_mercer_loads_no_library(tmp_path: Path) -> None:
    assert not modules_after("import mercer", tmp_path) & _LIBRARIES


def test_every_name_is_found_and_listed() -> None:
    for package in (mercer, estimators):
        assert {*package.__all__} <= {*dir(package)}
        for name in package.__all__:
            found = getattr(package, name)
            assert (found.__name__ if inspect.ismodule(found) else found.__module__).startswith("mercer.")
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
def test_every_namespace_is_reached_from_mercer_and_everything_at_once() -> None:
    namespaces = ["displays", "errors", "estimators", "kernels", "libsvm", "losses", "margins", "teaching"]
    codes = [f"import mercer\nassert mercer.{name}.__name__.endswith('.{name}')" for name in namespaces]
    codes.append(
        "import mercer; mercer.displays.DecisionDisplay, mercer.losses.Huber, mercer.kernels.Gaussian, mercer.explain"
    )
    run_python(_COPIES, *codes, "from mercer import *\nSVC, linear_path, Certificate, save, show_versions")


def test_an_unknown_name_is_refused_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'mercer' has no attribute 'SVX'"):
        mercer.SVX  # noqa: B018  # type: ignore[attr-defined]
    assert not hasattr(mercer.estimators, "SVX")
