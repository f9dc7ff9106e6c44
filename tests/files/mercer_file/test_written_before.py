"""Files that version 0.1.0 wrote, of every class: read as they were meant, and written again in the same layout."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sklearn

import mercer
from reference import pipelines
from reference.forgery import taken_apart
from reference.small_models import MODELS, answers, fitted

HERE = Path(__file__).parent


def members(name):
    with zipfile.ZipFile(HERE / name) as written:
        return {name: written.read(name) for name in written.namelist()}


@pytest.fixture(scope="module")
def archive():
    return members("written_by_0_1_0.zip")


@pytest.fixture(scope="module")
def archive_of_pipelines():
    return members("pipelines_by_0_1_0.zip")


def close(found, wanted):
    assert found.keys() == wanted.keys()
    for method, values in wanted.items():
        if isinstance(values, str) or np.asarray(values).dtype.kind in "iUb":
            assert found[method] == values, method
        else:
            np.testing.assert_allclose(found[method], values, rtol=1e-9, atol=1e-12, err_msg=method)


def renamed(told):
    """A description with the names that parameters have now, and the defaults of parameters that came later."""
    if isinstance(told, list):
        return [renamed(one) for one in told]
    if not isinstance(told, dict):
        return told
    told = {key: renamed(value) for key, value in told.items()}
    if told.get("class") == "LinearSVC":
        params = told["state"]["params"] if "state" in told else told["params"]
        if "multi_class" in params:
            params["multiclass"] = params.pop("multi_class")
    if told.get("class") == "KernelMachineRegressor":
        params = told["state"]["params"] if "state" in told else told["params"]
        params.setdefault("epsilon", 0.1)
        params.setdefault("tau", 0.5)
    if told.get("class") == "Monomials":
        told["params"].setdefault("weighted", True)
    return told


def laid_out(content):
    """Everything that a file says but which versions and how many threads wrote it, with the bytes of its arrays."""
    document, arrays = taken_apart(content)
    document = renamed(document)
    (document["content"]["model"].get("fitted", {}).get("_functions_") or {}).pop("n_threads", None)
    return document["content"]["model"], {
        entry["name"]: (entry["dtype"], entry["shape"], entry["order"], data)
        for entry, data in zip(document["arrays"], arrays, strict=True)
    }


def test_there_is_one_of_every_class(archive):
    unwritten = {f"{name}.mercer" for name in MODELS} - archive.keys()
    assert not unwritten, (
        f"{sorted(unwritten)} are not in the archive; run tests/reference/small_models.py with its path"
    )
    assert {f"{name}.mercer" for name in MODELS} | {"answers.json"} == archive.keys()
    saved = {type(one) for name in MODELS for one in parts_of(fitted(name)[0])}
    wanted = {cls for cls in public_classes() if hasattr(cls, "_FITTED") and not cls.__name__.startswith("_")}
    missing = {cls.__name__ for cls in wanted - saved}
    assert not missing, f"{sorted(missing)} need an entry in MODELS of tests/reference/small_models.py"


def parts_of(model):
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]


def public_classes():
    found = [getattr(package, name) for package in (mercer, mercer.features) for name in package.__all__]
    return [one for one in found if isinstance(one, type)]


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.ModelVersionWarning")
@pytest.mark.parametrize("name", MODELS)
def test_it_is_read_and_written_as_before(name, archive, path):
    content = archive[f"{name}.mercer"]
    path.write_bytes(content)
    model = mercer.load(path)
    close(answers(model, fitted(name)[1]), json.loads(archive["answers.json"])[name])
    same_layout(model, content, path)


def same_layout(model, content, path):
    mercer.save(model, path)
    if taken_apart(content)[0]["content"]["scikit-learn"] == sklearn.__version__:
        assert laid_out(path.read_bytes()) == laid_out(content)


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.ModelVersionWarning")
@pytest.mark.parametrize("name", pipelines.PIPELINES)
def test_a_pipeline_is_read_and_written_as_before(name, archive_of_pipelines, path):
    content = archive_of_pipelines[f"{name}.mercer"]
    if taken_apart(content)[0]["content"]["scikit-learn"].split(".")[:2] != sklearn.__version__.split(".")[:2]:
        pytest.skip("written with another version of scikit-learn, whose attributes may differ")
    path.write_bytes(content)
    model, (again, rows) = mercer.load(path), pipelines.fitted(name)
    found, wanted = model.predict(rows), again.predict(rows)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    else:
        # The eigenvectors of another NumPy may put a sample on the boundary on its other side when it is fitted again.
        assert np.count_nonzero(found != wanted) <= (name == "features of a kernel")
    same_layout(model, content, path)


def test_a_file_from_before_names_no_theorem_that_does_not_hold(archive, path):
    path.write_bytes(archive["CalibratedRegressor, leave-one-out.mercer"])
    assert mercer.load(path).guarantee_.startswith("none: the kernel's parameters were computed from all samples")
