"""The files of a release: the page on the index, the checks of the distributions, the workflows, the policies."""

import importlib.util
import io
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mercer

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
LICENCES = [f"licenses/{path.name}" for path in (ROOT / "licenses").iterdir()]


def script(name):
    """Import a file of the folder release, which is no package."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "release" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


project_page, check_distributions, floors = script("project_page"), script("check_distributions"), script("floors")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def repository():
    """The address that pyproject.toml states, empty while it is not decided."""
    (entry,) = [e for e in PYPROJECT["tool"]["dynamic-metadata"] if "repository" in e]
    return entry["repository"]


def test_links_of_the_page_are_absolute():
    text = "[a](docs/a.md#b) ![p](docs/p.png) [c](https://c.example) [d](#d)\n```\nx[0](y)\n```\n[e](LICENSE)"
    page = project_page.long_description(text, "https://code.example/o/r", "v1.0")
    assert page == (
        "[a](https://code.example/o/r/blob/v1.0/docs/a.md#b) ![p](https://code.example/o/r/raw/v1.0/docs/p.png) "
        "[c](https://c.example) [d](#d)\n```\nx[0](y)\n```\n[e](https://code.example/o/r/blob/v1.0/LICENSE)"
    )


def test_without_a_repository_the_page_has_no_address():
    fields = project_page.dynamic_metadata({"repository": ""}, {"version": "1.0"})
    assert fields["urls"] == {}
    assert set(re.findall(r"https?://\S+", fields["readme"]["text"])) <= set(
        re.findall(r"https?://\S+", read("README.md"))
    )
    assert "](" not in check_distributions.prose(fields["readme"]["text"]).replace("](https", "")


@pytest.mark.parametrize(("version", "reference"), [("1.0", "v1.0"), ("1.0rc1", "v1.0rc1"), ("1.1.dev0", "main")])
def test_the_page_of_a_release_points_to_its_tag(version, reference):
    fields = project_page.dynamic_metadata({"repository": "https://code.example/o/r/"}, {"version": version})
    assert f"(https://code.example/o/r/blob/{reference}/LICENSE)" in fields["readme"]["text"]
    assert fields["urls"]["Source"] == "https://code.example/o/r"
    assert all(f"/{reference}/" in url or url.startswith(fields["urls"]["Source"]) for url in fields["urls"].values())


def test_every_file_that_the_page_points_to_is_there():
    page = project_page.long_description(read("README.md"), "https://code.example", "main")
    targets = re.findall(r"https://code\.example/(?:blob|raw)/main/([^)#\s]+)", page)
    assert len(targets) > 10
    assert all((ROOT / target).is_file() for target in targets)


def test_no_address_is_stated_before_it_is_decided():
    """One line of pyproject.toml has the address; the other files that a stranger reads repeat it or have none."""
    address = repository()
    assert re.fullmatch(r"https://[\w.-]+/[\w.-]+/[\w.-]+", address) or address == ""
    stated = re.findall(r"^repository-code: \"?([^\"\n]+)", read("CITATION.cff"), flags=re.MULTILINE)
    assert stated == ([address] if address else [])
    known = ("https://keepachangelog.com", "https://semver.org", "https://json-schema.org")
    for name in ("README.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "GOVERNANCE.md"):
        found = re.findall(r"https?://[^\s)>\"]+|[\w.+-]+@[\w-]+\.[\w.]+", read(name))
        assert [url for url in found if not url.startswith(known) and not (address and url.startswith(address))] == []


def write_wheel(folder, *, without=(), extra=(), version=mercer.__version__, text="[a](https://a.example)"):
    """A wheel of the right form, whose files are empty."""
    path = folder / f"mercer-{version}-cp312-abi3-win_amd64.whl"
    information = f"mercer-{version}.dist-info/"
    names = {"mercer/_core.pyd", *check_distributions.IN_WHEEL, *extra}
    names |= {f"{information}licenses/{name}" for name in ("LICENSE", *LICENCES)}
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(names - {name.replace("DIST-INFO/", information) for name in without}):
            archive.writestr(name, "")
        archive.writestr(f"{information}METADATA", f"Metadata-Version: 2.4\nVersion: {version}\n\n{text}\n")
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"without": ["mercer/notes/toy/web/core.wasm"]}, "lacks"),
        ({"without": ["DIST-INFO/licenses/licenses/nanobind.txt"]}, "lacks"),
        ({"without": ["mercer/_core.pyd"]}, "0 compiled cores"),
        ({"extra": ["tests/__init__.py"]}, "outside the package"),
        ({"text": "[a](docs/a.md)"}, "relative links"),
        ({"version": "99.0"}, "its version is 99.0"),
        ({"extra": ["mercer/_core.cp312-win_amd64.pyd"]}, "2 compiled cores"),
    ],
)
def test_a_wheel_that_lacks_something_is_refused(changes, words, tmp_path, capsys):
    path = write_wheel(tmp_path, **changes)
    assert check_distributions.main([str(path)]) == (words is not None)
    assert (words or "1 files are as they should be") in capsys.readouterr().out


def test_large_files_and_odd_names_are_refused(tmp_path, capsys, monkeypatch):
    path = write_wheel(tmp_path)
    monkeypatch.setattr(check_distributions, "MOST_BYTES", 100)
    assert check_distributions.main([str(path)]) == 1
    assert "bytes, more than 100" in capsys.readouterr().out
    monkeypatch.undo()
    odd = path.rename(tmp_path / "mercer.zip")
    assert check_distributions.main([str(odd)]) == 1
    assert "neither" in capsys.readouterr().out
    assert check_distributions.main([]) == 1


@pytest.mark.parametrize(
    ("name", "beginnings"),
    [
        ("nanobind", ["Redistribution and use in source and binary forms"]),
        ("robin-map", ["Permission is hereby granted, free of charge"]),
        (
            "libcxx",
            [
                "LLVM Exceptions to the Apache 2.0 License",
                "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION",
            ],
        ),
        (
            "wasi-libc",
            [
                "Redistribution and use in source and binary forms",
                "Permission is hereby granted, free of charge",
                "Permission to use, copy, modify, and distribute this",
            ],
        ),
    ],
)
def test_licences_are_whole(name, beginnings):
    """A list of copyright holders without their conditions satisfies no licence."""
    text = read(f"licenses/{name}.txt")
    assert [beginning for beginning in beginnings if beginning not in text] == []


def test_a_source_distribution_carries_its_tests(tmp_path, capsys):
    version = mercer.__version__
    path = tmp_path / f"mercer-{version}.tar.gz"

    def write(names):
        with tarfile.open(path, "w:gz") as archive:
            for name in (*names, "PKG-INFO"):
                content = f"Version: {version}\n\n".encode() if name == "PKG-INFO" else b""
                member = tarfile.TarInfo(f"mercer-{version}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

    whole = [*check_distributions.IN_SOURCE, "LICENSE", *LICENCES]
    assert all((ROOT / name).is_file() for name in whole)
    write(whole)
    assert check_distributions.main([str(path)]) == 0
    write([name for name in whole if not name.startswith("benchmarks/")])
    assert check_distributions.main([str(path)]) == 1
    write([*whole, "src/mercer/_core.abi3.so"])
    assert check_distributions.main([str(path)]) == 1
    assert "that a build made" in capsys.readouterr().out


def test_a_release_is_complete(tmp_path, monkeypatch):
    platforms = ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_x86_64")
    platforms = (*platforms, "macosx_11_0_arm64", "win_amd64")
    paths = [Path(f"mercer-1.0-{python}-{p}.whl") for python in ("cp311-cp311", "cp312-abi3") for p in platforms]
    paths.append(Path("mercer-1.0.tar.gz"))
    text = 'license-files = ["LICENSE"]\n[[tool.dynamic-metadata]]\nrepository = "https://code.example/o/r"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.setattr(check_distributions, "ROOT", tmp_path)
    monkeypatch.setattr(check_distributions, "source_version", lambda: "1.0.0")
    assert list(check_distributions.release_problems(paths)) == []
    assert "0 wheels cp312-abi3 for Windows" in "".join(
        check_distributions.release_problems([path for path in paths if "cp312-abi3-win" not in path.name])
    )
    monkeypatch.setattr(check_distributions, "source_version", lambda: "1.0.0.dev0")
    assert "not published" in "".join(check_distributions.release_problems(paths))
    (tmp_path / "pyproject.toml").write_text(text.replace("https://code.example/o/r", ""))
    assert "no address" in "".join(check_distributions.release_problems(paths))


def test_floors_are_the_oldest_versions_that_are_allowed():
    extras = {"test": ["pytest>=8"], "plot": ["matplotlib>=3.9"], "all": ["mercer[plot]"]}
    pins = floors.floors({"dependencies": ["numpy>=2.0"], "optional-dependencies": extras})
    assert pins == ["numpy==2.0.*", "matplotlib==3.9.*"]
    assert all(re.fullmatch(r"[\w-]+==\d+(\.\d+)?\.\*", pin) for pin in floors.floors(PYPROJECT["project"]))


def test_the_smoke_test_passes_here(tmp_path):
    """Without its commands, which start five interpreters; the workflows run all of it."""
    smoke_test = script("smoke_test")
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    smoke_test.check_versions()
    smoke_test.check_files(smoke_test.check_training(X, y), X, y, tmp_path)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_pinned_limited_and_keep_no_credentials(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    jobs = re.findall(r"^    runs-on:", text, flags=re.MULTILINE)
    assert len(re.findall(r"^    timeout-minutes: \d+$", text, flags=re.MULTILINE)) == len(jobs)
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")
    assert re.search(r"^permissions:( \{\}|\n  contents: read)$", text, flags=re.MULTILINE)


def test_workflows_pin_an_action_to_one_commit():
    used = {}
    for path in WORKFLOWS:
        for action, commit in re.findall(r"uses: (\S+)@(\S+)", path.read_text(encoding="utf-8")):
            used.setdefault(action, set()).add(commit)
    assert {action for action, commits in used.items() if len(commits) > 1} == set()


def test_every_part_of_the_checks_runs_in_public():
    """`.ci/run` and the workflow ci have the same parts, but for those that the default run leaves out."""
    parts = re.search(r"set -- (.*)", read(".ci/run"))[1].split()
    parts = {word for part in parts for word in part.replace("_beside_", "_").split("_")} - {"newer", "python"}
    run = {
        word
        for line in re.findall(r"bash \.ci/run ([\w ]+)", read(".github/workflows/ci.yml"))
        for word in line.split()
    }
    assert parts <= run


def test_publishing_goes_through_the_test_index_by_hand():
    text = read(".github/workflows/publish.yml")
    assert re.search(r"^on:\n  workflow_dispatch:", text, flags=re.MULTILINE)
    assert not re.search(r"^  (push|pull_request|release|schedule)", text, flags=re.MULTILINE)
    needs = dict(re.findall(r"^  ([\w-]+):\n(?:    .*\n)*?    needs: (.*)$", text, flags=re.MULTILINE))
    assert needs == {"test-index": "check", "installed": "[check, test-index]", "index": "installed"}
    assert text.count("id-token: write") == 2
    for path in set(WORKFLOWS) - {ROOT / ".github/workflows/publish.yml"}:
        assert "gh-action-pypi-publish" not in path.read_text(encoding="utf-8")
        assert "id-token" not in path.read_text(encoding="utf-8")


def test_policies_say_what_a_stranger_asks():
    assert "0.1" in read("SECURITY.md")
    for name in ("mercer.load", "CSV", "LIBSVM", "toy --serve", "Dask", "pickle"):
        assert name.lower() in read("SECURITY.md").lower()
    boxes = re.findall(r"^- \[ \] ", read("RELEASING.md"), flags=re.MULTILINE)
    assert len(boxes) > 10
    assert "deprecat" in read("CONTRIBUTING.md").lower()
    assert {path.name for path in (ROOT / ".github/ISSUE_TEMPLATE").iterdir()} == {"bug.yml", "config.yml", "wish.yml"}


def test_files_that_the_boxes_name_are_there():
    named = re.findall(r"`((?:[\w.]+/)*[\w.]+\.(?:md|py|toml|cff|yml|txt))`", read("RELEASING.md"))
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
