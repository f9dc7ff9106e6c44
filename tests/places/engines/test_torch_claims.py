"""Attempts to prove certificates of a device false, as tests/claims/test_false_claims.py does elsewhere.

A few problems by default, 20,000 on each device with `-m thorough`, in a hundred parts that may be chosen. On a GPU the
default run comes first: it compiles kernels for all processes of the next one, of which a few are best, since a card
serves one at a time:

    python -m pytest -n 0 tests/places/engines/test_torch_claims.py -k cuda
    python -m pytest -n 6 -v -m thorough tests/places/engines/test_torch_claims.py -k "cuda and (part0 or part1)"
"""

import pytest
from hypothesis import HealthCheck, given, seed, settings

from claims.false_claims import KERNELS, REFUSED
from claims.test_false_claims import _THOROUGH, CHECKS, broken, problems

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import field as torch_field  # noqa: E402  # after the skip without torch
from mercer.places.torch import gram as torch_gram  # noqa: E402  # after the skip without torch

# 20 machines · 100 parts · 10 problems.
_SHARDS, _EXAMPLES = (100, 10) if _THOROUGH else (1, 3)
_KNOWN = tuple(name for name in KERNELS if name not in ("matern", "chi2", "anova", "callable"))

pytestmark = [pytest.mark.filterwarnings("ignore")]
if _THOROUGH:
    pytestmark += [pytest.mark.thorough, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("shard", range(_SHARDS), ids=lambda k: f"part{k:02}")
@pytest.mark.parametrize("machine", CHECKS)
def test_no_claim_is_false(machine, shard, device, monkeypatch):
    """In every other shard small problems are solved in float32 too, by the device's own rounds if there are such."""
    if shard % 2 == 0:
        monkeypatch.setattr(torch_field, "_FEWEST_VARIABLES", 1)
        monkeypatch.setattr(torch_gram, "_FLOAT64_ROWS", 1)

    @seed(shard)
    @settings(max_examples=_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(problem=problems(machine, device, _KNOWN))
    def attempt(problem):
        before = len(REFUSED)
        assert not broken(problem)
        tried.append(len(REFUSED) == before)

    tried = []
    attempt()
    assert sum(tried) >= len(tried) / 3, "most problems were refused, so this shows little"
