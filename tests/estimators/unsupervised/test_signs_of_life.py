"""Long fits say what they do, and end soon after Ctrl-C; a call of LAPACK aside."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from mercer import KernelCCA, KernelKMeans, KernelPCA, SpectralClustering, mmd_test

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelPCA(2, verbose=True), "kernel values of 40 samples"),
        (KernelPCA(2, n_landmarks=10, verbose=True), "40 samples on 10 landmarks"),
        (KernelKMeans(2, kernel="linear", verbose=True), "start 1 of 10  iteration   0"),
        (SpectralClustering(2, gamma=1.0, verbose=True), "kernel values of 40 samples"),
        (KernelCCA(1, verbose=True), "kernel values of 40 samples"),
    ],
    ids=repr,
)
def test_what_is_done_is_told(model, words, capsys):
    model.fit(X, X[:, 0])
    lines = capsys.readouterr().out.splitlines()
    assert words in lines[0]
    assert lines[-1].endswith("done")
    model.set_params(verbose=False).fit(X, X[:, 0])
    assert capsys.readouterr().out == ""


def test_the_test_tells_too(capsys):
    mmd_test(X, X[::-1] + 1.0, n_permutations=19, verbose=True)
    assert "kernel values of 80 samples" in capsys.readouterr().out


def endless_clusters():
    KernelKMeans(30, n_init=10**6).fit(rng.normal(size=(800, 3)))


def endless_walk():
    SpectralClustering(20, n_init=10**6).fit(rng.normal(size=(300, 3)))


def endless_test():
    mmd_test(rng.normal(size=(400, 3)), rng.normal(size=(400, 3)), n_permutations=10**6)


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("endless", [endless_clusters, endless_walk, endless_test], ids=lambda f: f.__name__)
def test_ctrl_c(endless):
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless()
    assert time.monotonic() - pressed[0] < 2.0  # 0.2 s on a machine that does nothing else
