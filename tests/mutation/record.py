"""A plugin of pytest that records which functions of the package each test calls, and how long it takes.

Every process of a run writes one file into the folder that MERCER_RECORD names. What a fixture of a module or of the
session calls is counted for every test of the file, whichever of them made it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest


class Recorder:
    """Functions that tests of this process call."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.called = folder, set[CodeType]()
        self.tests: dict[str, list[str]] = {}
        self.shared: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}

    def trace(self, frame: FrameType, event: str, argument: object) -> None:
        """Note the function that is entered, and ask for none of its lines."""
        self.called.add(frame.f_code)

    def names(self) -> set[str]:
        """Return where the functions called begin, as file:line, and forget them."""
        called, self.called = self.called, set()
        places = [(code.co_filename.replace(os.sep, "/"), code.co_firstlineno) for code in called]
        return {f"src/mercer/{file.rpartition('/mercer/')[2]}:{line}" for file, line in places if "/mercer/" in file}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.shared.setdefault(item.nodeid.partition("::")[0], set()).update(self.end())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        began = time.process_time()
        self.begin()
        try:
            yield
        finally:
            self.tests[item.nodeid] = sorted(self.end())
            self.seconds[item.nodeid] = time.process_time() - began

    def begin(self) -> None:
        self.called = set()
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def end(self) -> set[str]:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        return self.names()

    def pytest_sessionfinish(self) -> None:
        if self.tests:
            shared = {file: sorted(names) for file, names in self.shared.items()}
            record = {"tests": self.tests, "shared": shared, "seconds": self.seconds}
            (self.folder / f"{os.getpid()}.json").write_text(json.dumps(record))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(os.environ["MERCER_RECORD"])))
