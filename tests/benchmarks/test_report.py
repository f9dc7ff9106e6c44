"""The report of all figures: it keeps what was measured when a section fails, and its pages say what the JSON holds."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.is_dir():  # a copy of the tests alone has none
    pytest.skip("benchmarks are not here", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

import checks  # noqa: E402
import report  # noqa: E402
import report_page  # noqa: E402
import report_sections  # noqa: E402
import report_tables  # noqa: E402
import svc_sections  # noqa: E402

MARKS = "<!-- results: {} -->\nold\n<!-- end of results -->\n"


def timing(best, **more):
    return {"best": best, "seconds": [best], "spread": 0.0, **more}


def fit(data, C, form, ours, **others):
    record = {"kind": "fit", "data": data, "form": form, "n": 1600, "d": 16, "C": C, "gamma": 0.1, "tol": 1e-3}
    competitors = {"mercer": timing(ours, nSV=123, violation=5e-4, dual=10.0)}
    competitors |= {name: timing(best, nSV=124, violation=9e-4, dual=10.001) for name, best in others.items()}
    return record | {"competitors": competitors, "check": svc_sections.agreement(record | {"competitors": competitors})}


def results(date="2026-11-19 10:00 UTC", quick=False, **sections):
    versions = {"mercer": "0.1", "scikit-learn": "1.9", "scikit-learn-intelex": "not installed"}
    facts = {"date": date, "cpu": "A Processor", "cores": 2, "threads": 2, "load": 0.1, "system": "Linux"}
    facts |= {"python": "3.11", "versions": versions, "level": "avx2", "commit": "abc"}
    told = {"date": date, "commit": "abc", "command": "python benchmarks/report.py", "skipped": []}
    return {
        "machine": facts,
        "quick": quick,
        "sections": {name: told | {"records": found} for name, found in sections.items()},
    }


FITS = [
    fit("letter", 1, "standardised", 0.1, sklearn=2.0),
    fit("spam", 10, "standardised", 0.02, sklearn=0.1),
    fit("usps", 10, "standardised", 0.1, sklearn=1.0),
    fit("mnist", 1, "standardised", 1.0, sklearn=10.0),
    fit("a9a", 1, "raw", 0.3, sklearn=60.0),
]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "README.md").write_text("# A\n\n" + MARKS.format("speed"))
    (tmp_path / "docs/speed.md").write_text("# S\n\n" + MARKS.format("fits"))
    (tmp_path / "docs/gpu.md").write_text("# G\n\n" + MARKS.format("gpu"))
    return tmp_path


def write(root, name, found):
    (root / "results" / name).write_text(json.dumps(found))


def test_pages_hold_the_figures_of_the_newest_whole_run(root):
    write(root, "a.json", results(fits=FITS))
    write(root, "b.json", results("2026-11-20 10:00 UTC", quick=True, fits=FITS[:1]))
    failed = results("2026-11-21 10:00 UTC", fits=FITS[:1])
    failed["sections"]["fits"]["error"] = "ended with code 1: no memory"
    write(root, "c.json", failed)
    write(root, "d.json", results("2026-11-22 10:00 UTC", fits=FITS[1:]))  # a table of README lacks a row
    changed = report_page.write(root / "results", root)
    assert {path.name for path in changed} == {"results.md", "README.md", "speed.md"}
    assert not report_page.write(root / "results", root)
    readme, speed, page = ((root / name).read_text() for name in ("README.md", "docs/speed.md", "docs/results.md"))
    assert "| letter | 1,600 × 16 | 1 | 123 | 0.1 s | 20.0× |" in readme
    assert "a9a" not in readme
    assert "scikit-learn (1 thread)" in readme
    assert "geometric means are 10.0×" in readme  # the fourth root of 20 · 5 · 10 · 10
    assert "10 times as fast as scikit-learn, which computes on one thread" in speed
    assert "| a9a | 1,600 × 16 | 1 | 123 | 0.3 s | 200.0× |" in speed
    assert "intelex" not in readme
    assert page.index("2026-11-21") < page.index("2026-11-20") < page.index("2026-11-19")
    assert "This section failed: ended with code 1: no memory." in page
    assert "Not installed: scikit-learn-intelex." in page
    assert "old" not in readme
    assert "old" in (root / "docs/gpu.md").read_text()  # nobody has measured it


def test_a_page_without_marks_is_refused(root):
    write(root, "a.json", results(fits=FITS))
    (root / "README.md").write_text("no marks")
    with pytest.raises(ValueError, match="there must be one block"):
        report_page.write(root / "results", root)


def test_answers_that_are_not_the_same_are_named():
    far = fit("letter", 1, "raw", 0.1, sklearn=2.0)
    far["competitors"]["sklearn"] |= {"dual": 10.1, "violation": 0.02}
    far["check"] = svc_sections.agreement(far)
    assert not far["check"]["same_objective"]
    told = " ".join(report_tables.misses([far, FITS[0]]))
    assert "scikit-learn stops above `tol` on letter raw C=1 (2.0e-02)." in told
    assert "differ by more than `tol` explains (relative): letter raw C=1 (9.9e-03)" in told
    assert "agree, up to a relative difference of at most 1.0e-04" in " ".join(report_tables.misses(FITS))


def test_a_mean_says_of_how_many_rows_it_is():
    some = [FITS[0], fit("spam", 1, "raw", 0.1, sklearn=0.5, libsvm=0.4)]
    text = report_tables.fit_table(some)
    assert "| **10.0×** | **4.0×** (1 rows) |" in text
    assert "| 20.0× |  |" in text


def test_float32_is_compared_with_float32():
    record = fit("letter", 1, "raw", 0.1, mercer32=0.05, sklearnex32=0.2)
    assert report_tables.ratio(record, "sklearnex32") == pytest.approx(4.0)
    record["competitors"]["sklearnex32"] = {"ratio": 7.0}
    assert report_tables.ratio(record, "sklearnex32") == 7.0


def test_a_section_that_fails_or_hangs_loses_nothing_else(root, monkeypatch):
    def ended(words, seconds, errors):
        name = words[words.index("--measure") + 1]
        into = Path(words[words.index("--into") + 1])
        if name == "small":
            errors.write("Traceback\nModuleNotFoundError: No module named 'shap' in /home/me/lib/x.py\n")
            return "ended with code 1"
        into.write_text(json.dumps({"records": FITS, "skipped": ["covtype10k: not there"]}))
        return "did not end within 5 s" if name == "threads" else ""

    monkeypatch.setattr(report, "_ended", ended)
    options = ["--results", str(root / "results"), "--root", str(root), "--name", "here"]
    report.main([*options, "--sections", "fits,small,threads"])
    found = json.loads((root / "results/here.json").read_text())["sections"]
    assert found["fits"]["records"] == FITS
    assert "error" not in found["fits"]
    assert found["fits"]["skipped"] == ["covtype10k: not there"]
    assert found["small"]["error"] == "ended with code 1: ModuleNotFoundError: No module named 'shap' in …/x.py"
    assert found["threads"]["error"] == "did not end within 5 s"
    assert len(found["threads"]["records"]) == len(FITS)
    page = (root / "docs/results.md").read_text()
    assert "Left out: covtype10k: not there." in page
    assert "20.0×" in (root / "README.md").read_text()
    # Another run of one section keeps the others.
    report.main([*options, "--sections", "small"])
    assert json.loads((root / "results/here.json").read_text())["sections"]["fits"]["records"] == FITS


def test_when_the_time_is_over_the_rest_is_left_out(root, monkeypatch):
    monkeypatch.setattr(report, "TOTAL", 0.0)
    report.main(["--results", str(root / "results"), "--name", "here", "--no-pages", "--sections", "fits"])
    found = json.loads((root / "results/here.json").read_text())["sections"]["fits"]
    assert found["records"] == []
    assert "were over" in found["skipped"][0]


def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path):
    mark = tmp_path / "mark"
    child = f"import time, pathlib; time.sleep(4); pathlib.Path({str(mark)!r}).touch()"
    words = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"]
    with (tmp_path / "errors").open("w+") as errors:
        assert report._ended(words, 2.0, errors) == "did not end within 2 s"
        assert report._ended([sys.executable, "-c", "raise SystemExit(3)"], 60.0, errors) == "ended with code 3"
        assert report._ended([sys.executable, "-c", "pass"], 60.0, errors) == ""
    time.sleep(3)
    assert not mark.exists()


def test_all_sections_have_a_title_a_table_and_time_for_everything():
    assert set(report_sections.SECTIONS) <= set(report_tables.TITLES)
    assert set(report_tables.TITLES) == set(report_tables.WRITERS)
    assert sum(report_sections.SECTIONS[name].seconds for name in report_sections.DEFAULT) <= report.TOTAL
    assert report.TOTAL <= 30 * 60
    with pytest.raises(SystemExit):
        report.parse(["--sections", "nothing"])


def test_sections_measure_with_generated_data_alone():
    """Tiny runs, without a folder and without peers that may be missing."""
    run = report_sections.Run(None, True, 1, 1, time.monotonic() + 600, peers=("sklearn",))
    found = next(report_sections.threads(run))
    assert "threads" in "".join(report_tables.WRITERS["threads"]({"records": [found]})).lower()
    rows = list(report_sections.calibration(run))
    assert [row["data"] for row in rows] == ["digits", "mixture"]
    assert all(abs(row["log loss"]["mercer"] - row["log loss"]["scikit-learn"]) < 0.15 for row in rows)
    assert any("spam.npz" in why for why in run.skipped)
    assert "| digits | 1,000 × 64 | 10 |" in "\n".join(report_tables.WRITERS["calibration"]({"records": rows}))


def test_runs_of_checks_are_recorded_and_shown(root, monkeypatch):
    assert "No run has been recorded" in report_page.results_page(root / "results")
    monkeypatch.setattr(checks, "command_of", lambda what, thorough, words: ["-c", *words])
    options = ["--results", str(root / "results")]
    assert checks.main([*options, "falsifier", "print('===== 470 passed in 3 s =====')"]) == 0
    assert checks.main([*options, "mutants", "print('killed 3'); raise SystemExit(1)"]) == 1
    assert checks.main([*options, "mutants", "print('killed 3'); raise SystemExit(1)"]) == 1
    runs = json.loads((root / "results" / report_page.CHECKS).read_text())["runs"]
    assert [run["result"] for run in runs] == ["470 passed in 3 s", "killed 3 (ended with code 1)"]
    page = report_page.results_page(root / "results")
    assert "| 470 passed in 3 s |" in page
    assert "killed 3 (ended with code 1)" in page


@pytest.mark.thorough
def test_a_quick_run_of_some_sections(tmp_path):
    """The command as a user gives it."""
    command = [
        sys.executable,
        str(BENCHMARKS / "report.py"),
        "--quick",
        "--peers",
        "sklearn",
        "--results",
        str(tmp_path),
    ]
    command += ["--root", str(tmp_path), "--name", "here", "--sections", "growth_in_d,compression"]
    subprocess.run(command, check=True, capture_output=True)
    found = json.loads((tmp_path / "here.json").read_text())
    assert all(section["records"] for section in found["sections"].values())
    assert "Growth with the number of features" in (tmp_path / "docs/results.md").read_text()


@pytest.mark.thorough
@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.name)
def test_every_program_says_how_it_is_used(path):
    if "\nif __name__ ==" in path.read_text(encoding="utf-8"):
        done = subprocess.run([sys.executable, str(path), "--help"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "usage:" in done.stdout
