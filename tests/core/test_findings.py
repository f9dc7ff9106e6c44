"""The core's findings bound what any f within its errors would give, and are reached by one."""

import numpy as np
import pytest

from mercer import _core


def loss_and_share(r, d, lower, upper, beta):
    """max over t in the box of rt − dt²/2, and what β leaves of it."""
    t = np.clip(r / d, lower, upper) if d > 0 else upper if r > 0 else lower
    loss = r * t - 0.5 * d * t * t
    return loss, loss - (r * beta - 0.5 * d * beta * beta)


@pytest.mark.parametrize("d", [0.0, 0.7])
def test_losses_shares_and_residuals_within_the_errors_of_f(d):
    rng = np.random.default_rng(0)
    n = 40
    p, f, error = rng.normal(size=n), rng.normal(size=n), rng.uniform(0, 0.5, n)
    lower, upper = np.full(n, -1.0), np.full(n, 1.5)
    beta = rng.choice([-1.0, 0.0, 0.4, 1.5], n)
    zeros = np.zeros(n)
    found = _core.linear_findings(p, lower, upper, zeros + d, zeros, f, error, beta)
    losses, shares, total, worst, box, outward, inward, top, bottom = found
    best_losses, best_shares, tops, bottoms = [], [], [], []
    for i in range(n):
        residuals = p[i] - f[i] + np.linspace(-error[i], error[i], 101)
        pairs = [loss_and_share(r, d, lower[i], upper[i], beta[i]) for r in residuals]
        best_losses.append(max(loss for loss, _ in pairs))
        best_shares.append(max(share for _, share in pairs))
        h = residuals - d * beta[i]
        tops.append(h.max() if beta[i] < upper[i] else -np.inf)
        bottoms.append(h.min() if beta[i] > lower[i] else np.inf)
    assert losses == pytest.approx(sum(best_losses), rel=1e-12)
    assert shares == pytest.approx(sum(best_shares), rel=1e-12)
    assert worst == np.argmax(best_shares)
    assert (top, bottom) == pytest.approx((max(tops), min(bottoms)), rel=1e-12)
    assert total == pytest.approx(beta.sum(), abs=1e-12)
    assert box == 0
    assert max(outward, inward) == pytest.approx(max(*tops, *(-np.array(bottoms))), rel=1e-12)
