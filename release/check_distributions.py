"""Check the files that would be published: what each contains, how large it is, and whether all of them are there.

    python release/check_distributions.py dist/*                what each file alone must satisfy
    python release/check_distributions.py --complete dist/*     and that these are all files of one release

Exit code 1 if a check fails; each failure is printed.
"""

import re
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_BYTES = 5_000_000
WHEEL = re.compile(r"mercer-(?P<version>[^-]+)-(?P<python>cp\d+-\w+)-(?P<platform>.+)\.whl")
PYTHONS = ("cp311-cp311", "cp312-abi3")
PLATFORMS = {
    "Linux x86_64": r"manylinux_.*_x86_64",
    "Linux aarch64": r"manylinux_.*_aarch64",
    "macOS x86_64": r"macosx_.*_x86_64",
    "macOS arm64": r"macosx_.*_arm64",
    "Windows AMD64": r"win_amd64",
}
# Beside the modules: the compiled core with its types, and the page with its own core.
IN_WHEEL = ("mercer/py.typed", "mercer/_core.pyi", "mercer/notes/toy/web/core.wasm", "mercer/notes/toy/web/index.html")
IN_SOURCE = (
    "CMakeLists.txt",
    "constraints.txt",
    "docs/conf.py",
    "release/smoke_test.py",
    "tests/conftest.py",
    "benchmarks/harness.py",
)


def source_version():
    """Return the version that src/mercer/__init__.py states."""
    text = (ROOT / "src/mercer/__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.*)"$', text, flags=re.MULTILINE)[1]


def licences():
    """Return the names of the licence files that every distribution carries."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    return sorted(path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern))


def wheel_problems(path):
    """Yield what is wrong with a wheel."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata = next((name for name in names if name.endswith(".dist-info/METADATA")), None)
        if metadata is None:
            yield "it has no METADATA"
            return
        yield from metadata_problems(archive.read(metadata).decode())
    folder = metadata.removesuffix("METADATA")
    cores = [name for name in names if re.fullmatch(r"mercer/_core\..*(so|pyd)", name)]
    if len(cores) != 1:
        yield f"it has {len(cores)} compiled cores: {cores}"
    yield from missing_files(names, (*IN_WHEEL, *(f"{folder}licenses/{name}" for name in licences())))
    outside = [name for name in names if not name.startswith(("mercer/", folder))]
    if outside:
        yield f"it would install files outside the package: {outside}"


def source_problems(path):
    """Yield what is wrong with a source distribution."""
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        information = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO").read().decode()
    yield from metadata_problems(information)
    yield from missing_files(names, (*IN_SOURCE, *licences()))
    built = [name for name in names if name.endswith((".so", ".pyd", ".o", ".pyc", ".mercer")) and "/data/" not in name]
    if built:
        yield f"it contains files that a build made: {built}"


def metadata_problems(text):
    """Yield what is wrong with METADATA or PKG-INFO."""
    fields = Parser().parsestr(text)
    if fields["Version"] != source_version():
        yield f"its version is {fields['Version']}, that of the sources {source_version()}"
    relative = [
        target for target in re.findall(r"\]\(([^)\s]+)\)", prose(fields.get_payload())) if not is_absolute(target)
    ]
    if relative:
        yield f"its description has relative links, which are dead on an index: {relative}"


def prose(text):
    """Return a Markdown text without its code, in which brackets mean something else."""
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def is_absolute(target):
    return re.match(r"[a-z]+:|#", target) is not None


def missing_files(names, wanted):
    absent = sorted(set(wanted) - set(names))
    if absent:
        yield f"it lacks {absent}"


def release_problems(paths):
    """Yield what is wrong with the files of a release taken together."""
    wheels = [found.groupdict() for path in paths if (found := WHEEL.fullmatch(path.name))]
    for python in PYTHONS:
        for name, pattern in PLATFORMS.items():
            count = sum(w["python"] == python and re.fullmatch(pattern, w["platform"]) is not None for w in wheels)
            if count != 1:
                yield f"there are {count} wheels {python} for {name}, and there must be one"
    sources = [path.name for path in paths if path.name.endswith(".tar.gz")]
    if len(sources) != 1:
        yield f"there are {len(sources)} source distributions, and there must be one"
    if len(paths) != len(PYTHONS) * len(PLATFORMS) + 1:
        yield f"there are {len(paths)} files, and there must be {len(PYTHONS) * len(PLATFORMS) + 1}"
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", source_version()):
        yield f"{source_version()} is a version of the development, which is not published"
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["dynamic-metadata"]
    if not any(entry.get("repository") for entry in entries):
        yield "pyproject.toml does not say where the repository is, so that the index would show no address"


def file_problems(path):
    """Yield what is wrong with one file."""
    if path.stat().st_size > MOST_BYTES:
        yield f"it has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}"
    if WHEEL.fullmatch(path.name):
        yield from wheel_problems(path)
    elif re.fullmatch(r"mercer-[^-]+\.tar\.gz", path.name):
        yield from source_problems(path)
    else:
        yield "its name is neither that of a wheel nor that of a source distribution of mercer"


def main(words):
    complete = "--complete" in words
    paths = sorted(Path(word) for word in words if word != "--complete")
    problems = [f"{path.name}: {problem}" for path in paths for problem in file_problems(path)]
    if not paths:
        problems.append("no file was named")
    if complete:
        problems.extend(release_problems(paths))
    print(*(problems or [f"{len(paths)} files are as they should be"]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
