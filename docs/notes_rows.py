"""The page docs/notes_rows.md, made from docs/notes_rows.toml: python docs/notes_rows.py writes it.

The page is in the repository, so that it can be read there. A test compares the two.
"""

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
HEAD = """# Row by row

What the five lecture notes define, and where mercer has it: the call, the page that explains it, and the test that
holds it to its formula. A test looks whether each of them is there. `python docs/notes_rows.py` writes this page from
`docs/notes_rows.toml`.
"""


def sections():
    return tomllib.loads((DOCS / "notes_rows.toml").read_text(encoding="utf-8"))["section"]


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
    what = one["what"].replace("|", "\\|")
    return f"| {what} | {calls}<br>{pages}<br>{tests} |"


def page():
    parts = [HEAD]
    for section in sections():
        parts += [f"## {section['title']}\n", "| what | call, page, test |", "|---|---|"]
        parts += [row(one) for one in section["rows"]]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    (DOCS / "notes_rows.md").write_text(page(), encoding="utf-8")
