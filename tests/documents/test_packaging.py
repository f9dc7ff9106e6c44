"""The promises of the package's configuration: versions, extras, floors, wheels, what a bug report shows."""

import importlib.metadata
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import mercer
from mercer.runtime.errors import MissingExtraError
from mercer.runtime.optional import EXTRAS, require

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def package(requirement):
    return re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-")


def test_one_version():
    literal = re.findall(r'^__version__ = "(.*)"$', read("src/mercer/__init__.py"), flags=re.MULTILINE)
    assert literal == [mercer.__version__] == [importlib.metadata.version("mercer")]
    assert f"\nversion: {mercer.__version__}\n" in read("CITATION.cff")


def test_a_release_is_dated_and_the_development_is_not():
    """The changelog and the citation say when a version came out; a version of the development did not."""
    headings = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", read("CHANGELOG.md"), flags=re.MULTILINE)
    released = re.findall(r"^date-released: (\S+)$", read("CITATION.cff"), flags=re.MULTILINE)
    version, _, development = mercer.__version__.partition(".dev")
    date = headings[0][1]
    assert headings[0][0] == version.partition("rc")[0]
    if development or "rc" in version:
        assert (date, released) == ("unreleased", [])
    else:
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date)
        assert released == [date]


def test_extras():
    extras = PROJECT["optional-dependencies"]
    known = {"plot", "progress", "parquet", "excel", "onnx", "qp", "torch", "dask", "formula"}
    assert set(extras) == {"all", "test", "lint", "docs", "bench"} | known
    assert [set(re.fullmatch(r"mercer\[(.*)\]", line)[1].split(",")) for line in extras["all"]] == [known]
    assert known <= set(re.findall(r"^\| `(\w+)` \|", read("docs/install.md"), flags=re.MULTILINE))
    for module, extra in EXTRAS.items():
        assert module.replace("_", "-") in map(package, extras[extra])


def test_floors():
    floors = {"numpy": "2.0", "scipy": "1.15", "scikit-learn": "1.9", "joblib": "1.4", "threadpoolctl": "3.5"}
    floors |= {"lazy_loader": "0.4"}
    assert PROJECT["dependencies"] == [f"{name}>={version}" for name, version in floors.items()]
    assert PROJECT["requires-python"] == ">=3.11"


def test_constraints_pin_everything_our_checks_install():
    pinned = dict(line.split("==") for line in read("constraints.txt").splitlines() if line and line[0] != "#")
    extras = PROJECT["optional-dependencies"]
    wanted = (
        PROJECT["dependencies"]
        + extras["test"]
        + extras["lint"]
        + extras["docs"]
        + extras["torch"]
        + PYPROJECT["build-system"]["requires"]
    )
    assert {package(requirement) for requirement in wanted} <= {package(name) for name in pinned}


def test_pre_commit_uses_the_pinned_linters():
    constraints, hooks = read("constraints.txt"), read(".pre-commit-config.yaml")
    for name in ("ruff", "mypy"):
        version = re.search(rf"^{name}==(.*)$", constraints, flags=re.MULTILINE)[1]
        assert f"rev: v{version}\n" in hooks


def test_classifiers_builds_and_ci_name_the_same_pythons():
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    built = [f"3.{minor}" for minor in re.findall(r"cp3(\d+)-\*", PYPROJECT["tool"]["cibuildwheel"]["build"])]
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/ci.yml"))[1]
    assert pythons == built == re.findall(r'"(.*?)"', tested)
    assert f"CPython {pythons[0]} to {pythons[-1]}" in read("docs/install.md")


def test_first_page_and_workflow_name_the_same_platforms():
    platforms = re.findall(r"platform: ([\w-]+)", read(".github/workflows/wheels.yml"))
    rows = re.findall(r"^\| (Linux|macOS|Windows) \| (.*?) \|", read("docs/install.md"), flags=re.MULTILINE)
    listed = {f"{system}-{machine}".lower() for system, machines in rows for machine in machines.split(", ")}
    assert {name.replace("_", "-") for name in platforms} == {name.replace("_", "-") for name in listed}


def test_show_versions(capsys):
    mercer.show_versions()
    text = capsys.readouterr().out
    for line in (
        rf"  mercer +{re.escape(mercer.__version__)}",
        r"  instruction set +\w+ \(of .*plain.*\)",
        r"  threads +\d+",
        r"  python +3\.",
        r"  commit +\S",
        *(rf"  {name} +\d" for name in ("numpy", "scipy", "scikit-learn", "threadpoolctl")),
        *(rf"  {name} +(\d|not installed)" for name in EXTRAS),
    ):
        assert re.search(f"^{line}", text, flags=re.MULTILINE), line


def test_show_versions_names_the_commit_of_the_build(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mercer.runtime.versions, "files", lambda package: tmp_path)
    mercer.show_versions()
    assert re.search(r"^  commit +unknown", capsys.readouterr().out, flags=re.MULTILINE)
    (tmp_path / "commit.txt").write_text("0123456789ab-dirty\n")
    mercer.show_versions()
    assert re.search(r"^  commit +0123456789ab-dirty$", capsys.readouterr().out, flags=re.MULTILINE)


def test_show_versions_names_devices(capsys, monkeypatch):
    """torch is imported for it where there is one, and where there is none nobody misses it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    mercer.show_versions()
    assert "torch-cpu" not in capsys.readouterr().out
    gpu = SimpleNamespace(name="A card", total_memory=16 << 30)
    cuda = SimpleNamespace(is_available=lambda: True, device_count=lambda: 2, get_device_properties=lambda k: gpu)
    torch = SimpleNamespace(cuda=cuda, get_num_threads=lambda: 3)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    mercer.show_versions()
    text = capsys.readouterr().out
    assert re.search(
        r"^devices:\n  torch-cpu +3 threads\n  cuda:0 +A card, 16 GiB\n  cuda:1 ", text, flags=re.MULTILINE
    )


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(EXTRAS, "no_such_module", "plot")
    with pytest.raises(MissingExtraError, match=r"a picture needs no_such_module.*pip install 'mercer\[plot\]'"):
        require("no_such_module.pyplot", "a picture")
    assert issubclass(MissingExtraError, ImportError)
