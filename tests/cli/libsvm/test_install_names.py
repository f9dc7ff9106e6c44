"""LIBSVM's names: scripts that call its tools, as grid.py and easy.py do, run unmodified."""

import os
import subprocess
import sys

import numpy as np
import pytest

from mercer.cli.main import main
from mercer.files.libsvm_text import write_libsvm

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are scripts of sh")

# What LIBSVM's grid.py does for each C and gamma: a line of shell, and the last word of the line with "Cross" in it.
GRID = """
import sys
from subprocess import PIPE, Popen
svmtrain, dataset, best = sys.argv[1], sys.argv[2], (0.0, None)
for c in (8.0,):
    cmdline = '"{0}" -c {1} -g {2} -v 3 {3} "{4}"'.format(svmtrain, c, 0.5, '-m 100 -h 1', dataset)
    result = Popen(cmdline, shell=True, stdout=PIPE, stderr=PIPE, stdin=PIPE).stdout
    for line in result.readlines():
        if str(line).find('Cross') != -1:
            best = max(best, (float(line.split()[-1][0:-1]), c))
print('{0} {1}'.format(*best))
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a desk with blanks")
    X = np.random.default_rng(0).normal(size=(60, 3))
    write_libsvm(5 * X, np.where(X[:, 0] > 0, 1, -1), folder / "train")
    assert main(["install-libsvm-names", "--quiet", str(folder / "tools")]) == 0
    return folder


def test_grid_finds_its_line(desk):
    words = [sys.executable, "-c", GRID, desk / "tools" / "svm-train", "train"]
    done = subprocess.run(words, cwd=desk, capture_output=True, text=True, check=True)
    accuracy, C = done.stdout.split()
    assert float(accuracy) > 60
    assert C == "8.0"


def test_easy_scales_trains_and_predicts(desk, monkeypatch):
    tools = desk / "tools"

    def run(line):
        done = subprocess.run(line, shell=True, cwd=desk, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(f'"{tools}/svm-scale" -s "range" "train" > "train.scale"')
    monkeypatch.chdir(desk)
    assert main(["train", "-q", "-c", "8", "-g", "0.5", "train.scale", "train.model"]) == 0  # grid.py ran svm-train
    assert run(f'"{tools}/svm-predict" "train.scale" "train.model" "test.predict"').startswith("Accuracy = ")
    assert len((desk / "test.predict").read_text().split()) == 60


def test_what_it_did_not_write_is_left_alone(tmp_path, capsys):
    (tmp_path / "svm-predict").write_text("somebody else's")
    assert main(["install-libsvm-names", str(tmp_path)]) == 1
    assert "svm-predict already exists and was not written by this command" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["svm-predict"]
    assert (tmp_path / "svm-predict").read_text() == "somebody else's"
    (tmp_path / "svm-predict").unlink()
    (tmp_path / "svm-scale").symlink_to("elsewhere")
    assert main(["install-libsvm-names", str(tmp_path)]) == 1


def test_what_it_wrote_is_written_anew(tmp_path, capsys):
    for _ in range(2):
        assert main(["install-libsvm-names", str(tmp_path / "new" / "tools")]) == 0
    assert sorted(os.listdir(tmp_path / "new" / "tools")) == ["svm-predict", "svm-scale", "svm-train"]
    assert os.access(tmp_path / "new" / "tools" / "svm-train", os.X_OK)
    assert "which runs mercer train" in capsys.readouterr().out


def test_exit_codes_and_messages_come_through(desk):
    done = subprocess.run([desk / "tools" / "svm-train", "nothing"], cwd=desk, capture_output=True, text=True)
    assert done.returncode == 1
    assert "can't open" in done.stderr
