"""Build the page's core: src/mercer/notes/toy/web/core.wasm from page/core and src/core.

    python page/build.py            build it, and put it where the package carries it
    python page/build.py --check    build it, and tell whether the package carries the same bytes

Needs cmake, ninja and, on Debian, the packages clang-19 lld-19 wasi-libc libc++-19-dev-wasm32 and
libclang-rt-19-dev-wasm32. Exit code 3: these are not installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARRIED = ROOT / "src/mercer/notes/toy/web/core.wasm"
COMPILER = "clang++-19"
PACKAGES = "clang-19 lld-19 wasi-libc libc++-19-dev-wasm32 libclang-rt-19-dev-wasm32"
MOST_BYTES = 400_000


def missing() -> list[str]:
    """What this machine lacks."""
    programs = [name for name in ("cmake", "ninja", COMPILER, "wasm-ld-19") if shutil.which(name) is None]
    library = Path("/usr/lib/wasm32-wasi/libc++.a")
    return programs + ([] if library.exists() else [str(library)])


def build(folder: Path) -> bytes:
    """The module's bytes."""
    toolchain = ROOT / "page/core/wasi.cmake"
    subprocess.run(
        ["cmake", "-S", ROOT / "page/core", "-B", folder, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["cmake", "--build", folder], check=True)
    return (folder / "core.wasm").read_bytes()


def main() -> int:
    lacking = missing()
    if lacking:
        print(f"not built, for want of {', '.join(lacking)}; on Debian: apt-get install {PACKAGES}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        made = build(Path(folder))
    if len(made) > MOST_BYTES:
        print(f"core.wasm has {len(made):,} bytes, more than {MOST_BYTES:,}", file=sys.stderr)
        return 1
    if "--check" in sys.argv[1:]:
        if made != CARRIED.read_bytes():
            print("core.wasm is not what these sources give: run python page/build.py and commit it", file=sys.stderr)
            return 1
        print(f"core.wasm is what these sources give ({len(made):,} bytes)")
        return 0
    CARRIED.write_bytes(made)
    print(f"{CARRIED.relative_to(ROOT)}: {len(made):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
