"""Signs of life on a terminal without `rich`: a line within two seconds, wiped at the end; nothing in a pipe."""

from __future__ import annotations

import io
import os
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mercer.cli.terminal import show_warning
from mercer.files.libsvm_text import write_libsvm
from mercer.runtime import progress
from mercer.runtime.errors import MissingExtraError
from mercer.runtime.progress import Reporter, StatusLine, waiting

# Says when the first fit begins, and hides rich.
COMMAND = """
import sys
from mercer.runtime import progress
from mercer.cli.main import main
from mercer.runtime.errors import MissingExtraError
def missing(*_):
    raise MissingExtraError
progress.require = missing
from mercer.estimators.fitting.pipeline.machine import Machine
fit = Machine.fit
def told(self, *data):
    print("the fit begins", flush=True)
    return fit(self, *data)
Machine.fit = told
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 12)).round(3)
    write_libsvm(X, np.where(X[:, 0] * X[:, 1] + rng.normal(size=9000) > 0, 1, -1), folder / "long")
    write_libsvm(X[:200], np.arange(200) % 3, folder / "short")
    return folder


def read_until(descriptor, words, seconds):
    """What a terminal shows until the words, and whether they came in time."""
    shown, end = "", time.monotonic() + seconds
    while words not in shown and time.monotonic() < end:
        if select.select([descriptor], [], [], 0.05)[0]:
            try:
                shown += os.read(descriptor, 4096).decode()
            except OSError:  # Linux says so when the other end is closed
                break
    return shown


def test_a_line_within_two_seconds_and_none_after_ctrl_c(folder):
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    words = ["train", "-c", "1000", "-e", "1e-6", "long", "m.model"]  # takes more than ten seconds
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    ) as process:
        os.close(slave)
        try:
            assert process.stdout.readline() == "the fit begins\n"
            shown = read_until(master, "support vectors", 2.0)
            assert re.search(r"\r\d+ s  [\d,]+ support vectors  violation [\d.e+]+  gap [~\d.e+]+", shown), shown
            process.send_signal(signal.SIGINT)
            after = read_until(master, "interrupted", 10.0)
            assert re.search(r"\r +\rmercer: interrupted", after), after
            assert process.wait(10) == 130
        finally:
            process.kill()
    os.close(master)
    assert not (folder / "m.model").exists()


def run(folder, *words):
    return subprocess.run([sys.executable, "-c", COMMAND, *words], cwd=folder, capture_output=True, text=True)


def test_nothing_in_a_pipe_unless_asked(folder):
    assert run(folder, "train", "short", "m.model").stderr == ""
    told = run(folder, "train", "--verbose", "short", "m.model").stderr
    assert re.match(r"mercer: training on 200 rows\nmercer: +\d+\.\d s  3 pairs of classes in one call\n", told)
    assert "support vectors  violation" in told
    told = run(folder, "train", "--verbose", "-v", "4", "short").stderr
    assert told.startswith("mercer: 4-fold cross-validation\n")
    assert told.endswith("mercer: 4 of 4 done\n")


def test_how_it_is_watched_changes_no_bit_of_the_model(folder):
    for name, words in {"plain": [], "told": ["--verbose"]}.items():
        assert run(folder, "train", *words, "short", name).returncode == 0
    assert (folder / "plain").read_bytes() == (folder / "told").read_bytes()


def missing(*_):
    raise MissingExtraError


class Terminal(io.StringIO):
    encoding = "ascii"

    def isatty(self):
        return True


def terminal_of(monkeypatch):
    """Standard error as a terminal; not a fixture, since pytest sets its own when the test begins."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "require", missing)
    monkeypatch.setattr(progress, "_FIRST_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    monkeypatch.setenv("COLUMNS", "60")
    return sys.stderr


def until(terminal, words):
    end = time.monotonic() + 5
    while words not in terminal.getvalue():
        assert time.monotonic() < end, terminal.getvalue()
        time.sleep(0.01)


def test_the_line_fits_the_terminal_and_no_number_is_cut(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with waiting("training on 12,345 rows"):
        until(terminal, "\rtraining on 12,345 rows  0 s")
        progress._current_display.get().show(
            StatusLine("   7,214 support vectors  violation 1.234e-03  gap ~8.325e+02     12,345 steps", 10.0, 0.5)
        )
        until(terminal, "support")
    last = terminal.getvalue().split("\r")[-3]
    assert last.rstrip() == "0 s  about 10 s left  7,214 support vectors"
    assert terminal.getvalue().endswith(f"\r{' ' * len(last)}\r")


def test_folds_are_counted(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with waiting("cross-validation", steps=3) as counted:
        for k in counted(range(3)):
            until(terminal, f"cross-validation  {k} of 3 done")


def test_a_warning_begins_a_line(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with waiting("training"):
        until(terminal, "training")
        show_warning("this is one")
    assert re.search(r"\r +\rmercer: warning: this is one\n", terminal.getvalue())


def test_quiet_shows_nothing(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with waiting("training", quiet=True):
        time.sleep(0.05)
        assert not Reporter(False).is_due
    assert terminal.getvalue() == ""
