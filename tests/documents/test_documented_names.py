"""Every name of docs/api.md is there after `import mercer`, written as the page writes it."""

import os
import random
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
# One process has loaded the libraries that mercer needs, but nothing of mercer. A copy of it imports mercer and looks
# up the names of one module, so that no module is there because another one has loaded it, or all in some order.
LOOK = """
import os, sys
import numpy, pandas, scipy.linalg, scipy.optimize, scipy.sparse, sklearn.base, sklearn.metrics, sklearn.pipeline
for names in sys.argv[1:]:
    child = os.fork()
    if not child:
        import mercer
        for name in names.split():
            try:
                eval(name)
            except Exception as error:
                print(name, repr(error), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(names, "died", flush=True)
"""


def written():
    """Names as autosummary reads them, and those of the table of what functions take."""
    for block in re.findall(r"```\{eval-rst\}\n(.*?)```", PAGE, flags=re.DOTALL):
        module = re.search(r"currentmodule:: (\S+)", block)
        names = re.findall(r"^   ([\w.]+)$", block, flags=re.MULTILINE)
        assert module or not names
        yield from (f"{module[1]}.{name}" for name in names)
    yield from (f"mercer.{name}" for name in re.findall(r"^\| `([\w.]+)` \|", PAGE, flags=re.MULTILINE))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_every_name_is_there_after_import_mercer():
    names = sorted(set(written()), key=lambda name: name.rpartition(".")[::2])
    assert len(names) > 150  # the page was read
    by_module = [" ".join(group) for _, group in groupby(names, key=lambda name: name.rpartition(".")[0])]
    shuffled = [" ".join(random.Random(seed).sample(names, len(names))) for seed in range(3)]
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *by_module, *shuffled], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert not done.stdout, done.stdout
