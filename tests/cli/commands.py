"""mercer's command, called in this process, or in one whose standard error, at least, is a terminal."""

import os
import subprocess
import sys

import pytest

from mercer.cli.main import main


def run(*words, code=0):
    """Run it with these words; it must end with this code."""
    try:
        returned = main([str(word) for word in words])
    except SystemExit as exit:
        returned = exit.code
    assert returned == code


def on_a_terminal(words, folder, apart=False):
    """What a terminal of 100 columns shows of a command, its standard output where that goes `apart`, and its code."""
    master, slave = pytest.importorskip("pty").openpty()
    command = [sys.executable, "-m", "mercer", *words]
    streams = {"stdin": slave, "stdout": subprocess.PIPE if apart else slave, "stderr": slave}
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=folder, **streams, env=environment) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # Linux says so when the other end is closed
                break
            if not piece:
                break
            shown += piece
        printed = process.stdout.read() if apart else b""
    os.close(master)
    return shown.decode(), printed.decode(), process.returncode
