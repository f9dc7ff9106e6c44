"""Sizes of blocks, and how often rounds on a device are looked at, by a place that writes down what it is asked."""

import time

import numpy as np
import pytest

from mercer.places.host.blocks import INNER_SHARE, INNER_STEPS, BlockSize, RoundsResult, run_device_rounds


class Asked:
    """RoundsResult whose violation halves with each call, with so many free variables, up to some number of rounds."""

    def __init__(self, free=0, rounds=10**9, refuses=10**9):
        self.free, self.left, self.refuses, self.calls, self.settled = free, rounds, refuses, [], 0

    def run_rounds(self, count, size, share, least, most):
        assert not self.settled
        if size > self.refuses:
            return None
        self.calls.append((count, size, share, least, most))
        self.left -= count
        return RoundsResult(10 * count, 2.0 ** -len(self.calls), self.free, self.left <= 0)

    def copy_to_host(self):
        self.settled += 1


def test_rounds_are_looked_at_after_one_two_four_and_then_every_eight():
    place = Asked()
    taken, violation = run_device_rounds(place, BlockSize(64, 64), 2.0**-7, 10**6)
    assert place.calls == [(n, 64, INNER_SHARE, 2.0**-8, INNER_STEPS) for n in (1, 2, 4, 8, 8, 8, 8)]
    assert (taken, violation, place.settled) == (390, 2.0**-7, 1)


@pytest.mark.parametrize(
    ("place", "most", "looks"),
    [(Asked(), 70, 3), (Asked(rounds=15), 10**6, 4), (Asked(refuses=63), 10**6, 0)],
    ids=["steps", "time to drop variables", "a size that it does not take"],
)
def test_what_ends_rounds(place, most, looks):
    taken, _ = run_device_rounds(place, BlockSize(64, 64), 0.0, most)
    assert len(place.calls) == looks
    assert place.settled == 1
    assert taken == 10 * sum(call[0] for call in place.calls)


def test_a_deadline_ends_rounds_and_without_one_no_clock_is_read(monkeypatch):
    ticks = iter(range(3))
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    run_device_rounds(place := Asked(), BlockSize(64, 64), 0.0, 10**6, deadline=2.0)
    assert len(place.calls) == 3
    run_device_rounds(
        Asked(), BlockSize(64, 64), 2.0**-9, 10**6
    )  # a fourth look at the clock would raise StopIteration


def test_a_crowded_block_is_doubled_up_to_the_largest():
    run_device_rounds(place := Asked(free=700), BlockSize(1024, 10**6), 2.0**-3, 10**6)
    assert [size for _, size, *_ in place.calls] == [1024, 2048, 2048]  # 700 are less than 0.6 of 2,048
    block = BlockSize(1024, 1500)
    block.double_if_crowded(614)
    assert (block.size, block.share) == (1024, INNER_SHARE)
    block.double_if_crowded(615)
    assert block.size == 1500
    assert block.share < INNER_SHARE
    large = BlockSize(2048, 10**6)
    for _ in range(3):
        large.double_if_crowded(10**6)
    assert large.size == 3072


def test_a_device_that_takes_no_larger_block_leaves_it_to_the_loop():
    run_device_rounds(place := Asked(free=2000, refuses=2048), block := BlockSize(1024, 10**6), 0.0, 10**6)
    assert [size for _, size, *_ in place.calls] == [1024, 2048]
    assert block.size == 3072
    assert place.settled == 1
    assert np.isclose(block.share, 0.1)
