"""The page docs/peers.md, made from docs/peers.toml: python docs/peers.py writes it; a test compares the two."""

import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
HEAD = """# Features of other packages

This page lists features of the systems that mercer descends from, with the call that replaces each, or the reason why
there is none. [Coming from elsewhere](migration.md) translates the rest. A test runs every call, with `X`, `y` (0 and
1), `t` (numbers), `half` (y with −1 for unlabelled rows), `qid`, `csr` (X as a CSR matrix), `f` (decision values of
three classes), `path` (from `RLSRegressorCV`), files `rows` and `weights`, and `command`, which runs the command
`mercer`. `python docs/peers.py` writes this page from `docs/peers.toml`.
"""


def systems():
    return tomllib.loads((DOCS / "peers.toml").read_text(encoding="utf-8"))["system"]


def page():
    parts = [HEAD]
    for system in systems():
        parts += [f"## {system['title']}\n", "| what | here |", "|---|---|"]
        for row in system["rows"]:
            here = f"`{row['call']}`" if "call" in row else f"none: {row['refused']}"
            parts.append(f"| {row['what']} | {here} |")
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    (DOCS / "peers.md").write_text(page(), encoding="utf-8")
