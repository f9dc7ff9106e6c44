"""The page docs/notes_rows.md, made from docs/notes_rows.toml: python docs/notes_rows.py writes it.

The page is in the repository, so that it can be read there. A test compares the two.
"""

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
HEAD = """# Row by row

This page lists everything that the five lecture notes define, and where mercer has it: the place in the notes, a line
to run, the page that explains it, and the test that compares it with its formula. A test checks that each of them
exists and that every part of the notes has a row, and runs every line. `python docs/notes_rows.py` writes this page
from `docs/notes_rows.toml`.

Every line is true after these:
"""


def told():
    return tomllib.loads((DOCS / "notes_rows.toml").read_text(encoding="utf-8"))


def sections():
    return told()["section"]


def title(page):
    """The heading that a link leads to."""
    file, _, anchor = page.partition("#")
    text = (DOCS / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        return text.splitlines()[1]
    heads = re.findall(r"^#{1,3} (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)
    slugs = [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]
    whole = heads[0].replace("`", "")
    return f"{whole.partition(':')[0]}: {heads[slugs.index(anchor)]}" if anchor else whole


def row(one):
    calls = ", ".join(f"`mercer.{call}`" for call in one["calls"])
    pages = ", ".join(f"[{title(page)}]({page})" for page in one["pages"])
    tests = "<br>".join(f"`{test}`" for test in one["tests"])
    what, run = (one[key].replace("|", "\\|") for key in ("what", "run"))
    where = "; ".join(one["where"])
    return f"| {what}<br>*{where}* | `{run}`<br>{calls}<br>{pages}<br>{tests} |"


def page():
    parts = [HEAD, f"```python\n{told()['prelude'].strip()}\n```\n"]
    for section in sections():
        parts += [f"## {section['title']}\n", "| what, and where in the notes | run, call, page, test |", "|---|---|"]
        parts += [row(one) for one in section["rows"]]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    (DOCS / "notes_rows.md").write_text(page(), encoding="utf-8")
