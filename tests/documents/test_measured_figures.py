"""Every measured figure of README.md and of the pages is in a file of benchmarks/results, which makes their tables.

benchmarks/report.py writes the tables between marks. A figure outside them is listed with its page, its date and its
command in the section "pages" of a results file, or below as one that is no measurement of ours.
"""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
if not RESULTS.is_dir() or not (ROOT / "docs").is_dir():
    pytest.skip("benchmarks and pages lie beside a checkout only", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

import report_page  # noqa: E402

MADE = {"results.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in MADE)]
# A number with a unit of time or memory, or one that says how many times as fast, long or large.
NUMBER = r"\d[\d,]*(?:\.\d+)?"
UNIT = r"(?:s|ms|µs|GB|MB|seconds?|minutes?|hours?)(?![\w·])"
FIGURE = re.compile(rf"{NUMBER}(?:\s(?:to|and)\s{NUMBER})?(?:\s{UNIT}|×(?!\s?\d)|\stimes\b)")
# Limits, promises, options, and what others have measured: by page, in the words of the page.
NOT_MEASURED = {
    "README.md": ["Ctrl-C stops a fit within 0.2 s"],
    "certificate.md": ["at most 64 MB as dense rows"],
    "cluster.md": ["not back after 15 s", "no worker for 30 s", "(at least 5 s)", "two workers of 1.5 GB"],
    "compression.md": ["beyond 512 MB of their coordinates", "ends a compression within 0.2 s"],
    "files.md": ["at most 64 MB of memory", "takes at most 64 MB"],
    "gpu.md": ["`cache_size` is 2 GB or 100 GB", "at most 256 MB"],
    "internals.md": ["pieces of less than 0.1 s"],
    "large.md": ["on 1 GB of float64 rows"],
    "landmarks.md": ["which is 13 GB at"],
    "speed.md": ["in at most 30 minutes"],
    "solvers.md": ["the default of 1,000 MB"],
    "tuning.md": ["8,000 samples: 256 MB", "γ from 1/16 to 8 times that of"],
    "your_table.md": ["more than 20 times its median error", "by 4 times as much", "(16 times if it is one row)"],
}


def prose(text):
    """Return a page without code and without the blocks that report.py writes."""
    text = re.sub(r"<!-- results: .*?<!-- end of results -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith("    "))


def listed(page):
    """Return the figures of a page that a results file has."""
    name = page.name if page.parent == ROOT else f"docs/{page.name}"
    sections = [results["sections"].get("pages", {}) for _, results in report_page.load(RESULTS)]
    return [
        figure
        for part in sections
        for row in part.get("records", [])
        if row["page"] == name
        for figure in row["figures"]
    ]


def unlisted(text, known):
    """Return the figures of a text that no known phrase contains."""
    covered = [False] * len(text)
    for phrase in known:
        for match in re.finditer(r"\s+".join(map(re.escape, phrase.split())), text):
            covered[match.start() : match.end()] = [True] * (match.end() - match.start())
    return [match[0] for match in FIGURE.finditer(text) if not all(covered[match.start() : match.end()])]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_figure_is_in_a_results_file(page):
    known = [*listed(page), *NOT_MEASURED.get(page.name, [])]
    assert not unlisted(prose(page.read_text(encoding="utf-8")), known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_figure_of_a_results_file_is_on_its_page(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    known = [*listed(page), *NOT_MEASURED.get(page.name, [])]
    assert not [figure for figure in known if " ".join(figure.split()) not in text]


def test_every_page_of_a_results_file_exists():
    sections = [results["sections"].get("pages", {}) for _, results in report_page.load(RESULTS)]
    rows = [row for part in sections for row in part.get("records", [])]
    assert len(rows) > 10
    assert not [row["page"] for row in rows if not (ROOT / row["page"]).is_file()]
    assert all(re.match(r"2026-\d\d-\d\d$", row["date"]) and row["figures"] for row in rows)


def test_pages_and_tables_are_those_that_the_results_make():
    for path, text in report_page.pages(RESULTS, ROOT).items():
        assert path.read_text(encoding="utf-8") == text, f"run python benchmarks/report.py --pages: {path.name} differs"


def test_a_ratio_on_readme_is_the_ratio_of_two_times_in_a_file():
    """Read the table of README.md again, without the code that wrote it."""
    found = 0
    fits = []
    for path in RESULTS.glob("*.json"):
        fits += json.loads(path.read_text()).get("sections", {}).get("fits", {}).get("records", [])
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) < 6 or not cells[5].endswith("×"):
            continue
        n, d = cells[1].replace(",", "").split(" × ")
        same = [r["competitors"] for r in fits if (r["data"], r["n"], r["d"]) == (cells[0], int(n), int(d))]
        ratios = [
            c["sklearn"].get("ratio") or c["sklearn"]["best"] / c["mercer"]["best"] for c in same if "sklearn" in c
        ]
        assert any(f"{ratio:.1f}×" == cells[5] for ratio in ratios if ratio)
        found += 1
    assert found >= 3


@pytest.mark.parametrize(
    "text",
    [
        "It takes 3.2 s.",
        "It is 4 times as fast.",
        "21.8× as long",
        "3.0 and 5.6 times as fast",
        "needs 1.5 GB",
        "7 ms a row",
    ],
)
def test_a_figure_is_noticed(text):
    assert unlisted(text, [])
    assert not unlisted(text, [text])


@pytest.mark.parametrize("text", ["16,000 × 16 rows", "in 10 steps", "three times as long", "C = 10", "200 s·m"])
def test_other_numbers_are_none(text):
    assert not unlisted(text, [])
