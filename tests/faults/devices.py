"""Slips on torch's devices, which can be tried only where torch is installed."""

from importlib.util import find_spec

from faults.mutant import m

_PLACES, _SPARSE = "tests/engines/test_torch_places.py", "tests/engines/test_torch_sparse.py"

DEVICES = [
    m(
        "sparse rows on a device have no terms",
        "mercer/engines/torch/formula.py",
        "min(X.shape[1], 2 * X.longest)",
        "min(X.shape[1], 2)",
        f"{_SPARSE}::test_no_error_exceeds_its_bound",
    ),
    m(
        "entries of other columns count as well",
        "mercer/engines/torch/sparse.py",
        "values = torch.where(known, values, 0.0)",
        "values = values + 0.0",
        f"{_SPARSE}::test_columns_that_a_tile_does_not_use_are_left_out",
    ),
    m(
        "a device's rows have one rounding",
        "mercer/engines/torch/rows.py",
        "error = gamma(self.d + 8) * (self._lengths",
        "error = gamma(1) * (self._lengths",
        f"{_PLACES}::test_no_bound_of_rows_can_be_smaller",
    ),
    m(
        "a device's values between samples and landmarks are exact",
        "mercer/engines/torch/cross.py",
        "off = forth(C) + share * (",
        "off = 0.0 * share * (",
        f"{_PLACES}::test_no_bound_of_crosses_can_be_smaller",
    ),
    m(
        "an allocation that fails is not tried again",
        "mercer/engines/torch/memory.py",
        "if not is_out_of_memory(error) or step == 1:",
        "if True:",
        "tests/engines/test_torch_faults.py::test_tiles_become_smaller_until_there_is_room",
    ),
    m(
        "a user's autocast shortens products",
        "mercer/engines/torch/numbers.py",
        "if torch.is_autocast_enabled(device):",
        "if False:",
        "tests/engines/test_torch_faults.py::test_settings_of_torch_change_no_number",
    ),
] * (find_spec("torch") is not None)
