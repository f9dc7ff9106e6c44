"""The pages that show commands: each block is run, in order, in a folder that holds nothing but what the page made."""

import contextlib
import re
import shlex
from pathlib import Path

import pytest

from mercer.cli.main import _COMMANDS, main

DOCS = Path(__file__).parents[2] / "docs"
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS += ["thirteen", "fourteen", "fifteen"]


def blocks(page):
    return re.findall(
        r"^```(python|sh)\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def run_line(line):
    """A command as a shell would run it: ``mercer`` or ``python -c``, and what it prints into a file after ``>``."""
    words = shlex.split(line, comments=True)
    with contextlib.ExitStack() as stack:
        if ">" in words:
            words, (name,) = words[: words.index(">")], words[words.index(">") + 1 :]
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(name, "w"))))
        if words[:2] == ["python", "-c"]:
            exec(words[2], {})
        else:
            assert words[0] == "mercer"
            assert main(words[1:]) == 0, line


@pytest.mark.parametrize("page", ["command_line.md", "files.md", "your_table.md"])
def test_the_blocks_of_a_page_run_one_after_another(page, folder, capsys):
    for extra in ("matplotlib", "onnx"):
        pytest.importorskip(extra)
    scope, shells = {}, 0
    for language, block in blocks(page):
        if language == "python":
            exec(compile(block, page, "exec"), scope)
        for line in block.splitlines() if language == "sh" else ():
            run_line(line)
            shells += 1
    assert shells >= 3


def test_the_page_names_and_counts_the_commands():
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    counted, listed = re.search(r"There are (\w+) commands: `mercer (.*?)\.", text).groups()
    assert counted == NUMBERS[len(_COMMANDS)]
    assert re.findall(r"[\w-]+", listed.replace(" and ", " ")) == list(_COMMANDS)
    used = {
        line.split()[1]
        for _, block in blocks("command_line.md")
        for line in block.splitlines()
        if "mercer " in line[:7]
    }
    assert used == set(_COMMANDS)
