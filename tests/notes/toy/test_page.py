"""The page in a real browser: real clicks and keys, and its numbers compared with the library's."""

from __future__ import annotations

import html.parser
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import SVC, SVR, OneClassSVM, datasets, kernels
from mercer.notes import toy

from .browser import Browser
from .readings import at, message, needs_browser, numbers, state

pytestmark = pytest.mark.page
AGREE = 1e-8
DOCS = Path(__file__).parents[3] / "docs"
CONTROL, DELETE, ENTER, LEFT, RIGHT, UP = "\ue009", "\ue017", "\ue007", "\ue012", "\ue014", "\ue013"


def kernel_of(given: dict[str, Any]) -> Any:
    made = {
        "linear": lambda: kernels.Linear(),
        "poly": lambda: kernels.Polynomial(
            degree=int(given["degree"]), gamma=float(given["gamma"]), coef0=float(given["coef0"])
        ),
        "rbf": lambda: kernels.Gaussian(gamma=float(given["gamma"])),
        "laplacian": lambda: kernels.Laplacian(gamma=float(given["gamma"])),
    }
    first, *rest = (made[name]() for name in given["kernel"].split("+"))
    for other in rest:
        first = first + other
    return first


def fitted(given: dict[str, Any], kernel: Any, X: np.ndarray) -> Any:
    if given["task"] == "classify":
        C = np.inf if given.get("hard") else float(given["C"])
        return SVC(kernel=kernel, C=C, tol=1e-9).fit(X, given["c"])
    if given["task"] == "regress":
        C, epsilon = float(given["C"]), float(given["epsilon"])
        return SVR(kernel=kernel, C=C, epsilon=epsilon, tol=1e-9).fit(X[:, :1], X[:, 1])
    return OneClassSVM(kernel=kernel, nu=float(given["nu"]), tol=1e-9).fit(X)


def assert_as_in_python(page: Browser) -> dict[str, float]:
    """The certificate on the page is that of the library for the state in the link."""
    page.settle()
    given, ours = state(page), numbers(page)
    kernel, X = kernel_of(given), given["X"]
    with warnings.catch_warnings():  # sums of kernels have a higher rounding floor in NumPy
        warnings.simplefilter("ignore", UserWarning)
        model = fitted(given, kernel, X)
    proof = model.certificate_
    size = max(1.0, abs(proof.dual))
    assert ours["primal"] == pytest.approx(proof.primal, abs=AGREE * size + proof.gap)
    assert ours["dual"] == pytest.approx(proof.dual, abs=AGREE * size + proof.gap)
    assert 0 <= ours["gap"] <= AGREE * size
    for name in ("violation", "box", "equality", "feasibility", "slackness"):
        assert 0 <= ours[name] <= AGREE
    return ours


def slide(page: Browser, name: str, value: float) -> None:
    """Move a slider by the mouse, to about this value of its own scale."""
    box = page.element(f"#{name}")
    low, high, now = page.run(
        "const e = document.getElementById(arguments[0]); return [e.min, e.max, e.value].map(Number)", name
    )
    thumb = 16.0

    def place(v: float) -> tuple[float, float]:
        return box["left"] + thumb / 2 + (v - low) / (high - low) * (box["width"] - thumb), box["top"] + box[
            "height"
        ] / 2

    page.gesture([place(now), place((now + value) / 2), place(value)])
    page.settle()


@needs_browser
def test_points_by_clicks_dragging_and_undo(page: Browser) -> None:
    page.click("#clear")
    for c, places in enumerate([[(-2, 1), (-1.5, -1), (-2.5, 0)], [(2, 1), (1, -1), (2.5, 0.5), (-1.8, 0.2)]]):
        page.click(f"[data-pen='{c}']")
        for place in places:
            page.gesture([at(page, *place)])
    assert state(page)["c"].tolist() == [0, 0, 0, 1, 1, 1, 1]
    before = assert_as_in_python(page)
    page.gesture([at(page, 2, 1), at(page, 1, 0.5), at(page, 0, 0.2), at(page, -0.5, 0)])
    moved = state(page)["X"]
    np.testing.assert_allclose(moved[3], (-0.5, 0), atol=0.03)
    after = assert_as_in_python(page)
    assert after["dual"] != before["dual"]
    page.click("#undo")
    assert assert_as_in_python(page)["dual"] == pytest.approx(before["dual"], rel=1e-9)
    page.chord(CONTROL, "z")
    page.settle()
    assert len(state(page)["X"]) in (6, 7)
    page.click("#redo")
    page.click("#redo")
    assert assert_as_in_python(page)["dual"] == pytest.approx(after["dual"], rel=1e-9)


@needs_browser
def test_selecting_erasing_and_the_keyboard(page: Browser) -> None:
    page.click("#clear")
    for place in [(-2, 1), (-1, 1), (2, -1)]:
        page.gesture([at(page, *place)])
    page.click("[data-tool='select']")
    page.gesture([at(page, -3, 2), at(page, -1.5, 0.5), at(page, -0.5, 0)])
    page.gesture([at(page, -2, 1), at(page, -2, 0), at(page, -2, -1)])
    X = state(page)["X"]
    np.testing.assert_allclose(X, [(-2, -1), (-1, -1), (2, -1)], atol=0.05)
    page.keys("2")
    assert state(page)["c"].tolist() == [1, 1, 0]
    page.keys(DELETE)
    assert len(state(page)["X"]) == 1
    page.click("[data-tool='erase']")
    page.gesture([at(page, 3, -1), at(page, 2.5, -1), at(page, 2, -1)])
    assert len(state(page)["X"]) == 0
    page.keys("a", "1", LEFT, LEFT, UP, ENTER, "3", RIGHT, RIGHT, RIGHT, ENTER)
    assert state(page)["c"].tolist() == [0, 2]
    np.testing.assert_allclose(state(page)["X"], [(-0.2, 0.1), (0.1, 0.1)], atol=1e-9)
    assert_as_in_python(page)


@needs_browser
def test_C_moves_along_the_path_and_kernels_change(page: Browser) -> None:
    page.click("[data-kernel='linear']")
    page.click("[data-kernel='rbf']")
    page.settle()
    for goal in (-1.0, 0.5, 2.0):
        slide(page, "C", goal)
        assert float(state(page)["C"]) == pytest.approx(10**goal, rel=0.15)
        assert_as_in_python(page)
        assert "exact path" in page.run("return document.getElementById('proves').textContent")
    for name in ("laplacian", "poly", "linear", "rbf"):
        page.click(f"[data-kernel='{name}']")
        assert state(page)["kernel"] == name
        assert_as_in_python(page)
    page.click("#sum")
    page.click("[data-kernel='linear']")
    assert state(page)["kernel"] == "rbf+linear"
    assert_as_in_python(page)
    slide(page, "gamma", 0.5)
    assert_as_in_python(page)


@needs_browser
@pytest.mark.parametrize(
    "name", ["location", "location and scale", "rings", "interval", "three classes", "sine", "cloud"]
)
def test_data_sets_and_links_that_carry_them(page: Browser, url: str, name: str) -> None:
    page.run("document.getElementById('data-panel').open = true")
    page.click(f"[data-set='{name}']")
    ours = assert_as_in_python(page)
    link = page.run("return location.hash")
    page.run("window.location = 'about:blank'")
    page.open(url + link)
    page.settle()
    again = numbers(page)
    assert again["dual"] == pytest.approx(ours["dual"], rel=1e-9)


@needs_browser
@pytest.mark.parametrize("name", ["four classes", "pinwheel"])
def test_regions_are_what_predict_says(page: Browser, url: str, name: str) -> None:
    """Also in the middle of a pinwheel, where each of three classes wins one pair."""
    turn = np.exp(2j * np.pi / 3 * np.arange(3))
    wheel = [(z.real, z.imag, k) for k in range(3) for z in turn[k] * np.array([2 - 0.5j, 2 + 2j, 1 + 2j])]
    link = toy.link("classify", wheel, C=10) + "&kernel=linear" if name == "pinwheel" else f"#set={name}"
    page.run("window.location = 'about:blank'")
    page.open(url + link)
    page.theme("light")
    page.settle()
    given = state(page)
    model = fitted(given, kernel_of(given), given["X"])
    across, down = (grid.ravel() for grid in np.meshgrid(np.arange(3, 50) / 50, np.arange(3, 37) / 40))
    pixels, width, height = page.run(
        "const {width, height} = document.getElementById('plane');"
        "const context = document.getElementById('plane').getContext('2d');"
        "const at = (x, y) => [...context.getImageData(Math.round(x * width), Math.round(y * height), 1, 1).data];"
        "return [arguments[0].map((x, i) => at(x, arguments[1][i])), width, height]",
        across.tolist(),
        down.tolist(),
    )
    places = np.column_stack([-4 + 8 * np.round(across * width) / width, 3 - 6 * np.round(down * height) / height])
    told = model.predict(places)
    plain = np.linalg.norm(places[:, None] - given["X"], axis=2).min(axis=1) > 0.3  # no point there, and no border
    for shift in [(0.08, 0), (-0.08, 0), (0, 0.08), (0, -0.08)]:
        plain &= model.predict(places + shift) == told
    colours = np.array([[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167]])
    seen = np.linalg.norm(np.array(pixels)[:, None, :3] - colours, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(seen[plain], told[plain])
    assert plain.mean() > 0.5


@needs_browser
def test_every_state_that_the_docs_show_opens(page: Browser, url: str) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    states = sorted(set(re.findall(r"<!--\s+(?:toy|live|toy-link):\s+(#\S*?),?\s+(?:-->|\S)", text)))
    assert len(states) > 20
    for link in states:
        page.run("window.location = 'about:blank'")
        page.open(url + link)
        page.wait("return document.querySelectorAll('#certificate tr').length > 5")
        assert message(page) == "", link


@needs_browser
def test_hard_margin_says_what_is_so(page: Browser) -> None:
    page.click("#hard")
    assert_as_in_python(page)
    assert "Separable" in page.run("return document.getElementById('verdict').textContent")
    page.click("[data-kernel='linear']")
    page.settle()
    assert "Not separable" in page.run("return document.getElementById('verdict').textContent")


@needs_browser
def test_text_in_and_out(page: Browser) -> None:
    page.run("document.getElementById('data-panel').open = true")
    fill = "const t = document.getElementById('text'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))"
    page.run(fill, "+1 1:0.5 2:1.25\n-1 1:-2 2:0.5\n-1 2:-1\n+1 1:2 2:0.25\n")
    page.click("#read")
    assert state(page)["X"].tolist() == [[0.5, 1.25], [-2, 0.5], [0, -1], [2, 0.25]]
    assert state(page)["c"].tolist() == [0, 1, 1, 0]
    assert_as_in_python(page)
    before = state(page)
    for button in ("#write-libsvm", "#write-csv"):
        page.click(button)
        page.click("#read")
        np.testing.assert_array_equal(state(page)["X"], before["X"])
        np.testing.assert_array_equal(state(page)["c"], before["c"])
    page.settle()
    code = page.run("return document.getElementById('python').value")
    scope: dict[str, Any] = {}
    exec(code, scope)
    assert scope["model"].certificate_.dual == pytest.approx(numbers(page)["dual"], rel=1e-6)
    assert scope["model"].intercept_[0] == pytest.approx(numbers(page)["b"], abs=1e-6)  # and not of the other sign


@needs_browser
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("+1 1:nan 2:1\n-1 1:0\n", "not a finite number"),
        ("+1 1:1e400\n", "not a finite number"),
        ("1,2,a\n3,oops,b\n", "oops"),
        ("1 1:5 3:4\n", "the page has two"),
        ("1,2\n3,4,5,6\n", "columns"),
        ("", "no line"),
        ("\n".join(f"{i},{i},{i % 9}" for i in range(20)), "different labels"),
        ("\n".join(f"{i % 7},{i % 5},{i % 2}" for i in range(10_000)), "10000 rows"),
        ("x" * 5_000_000, "million characters"),
    ],
    ids=["nan", "overflow", "word", "three features", "columns", "empty", "labels", "10,000 rows", "5 MB"],
)  # fmt: skip
def test_bad_text_is_refused_in_words(page: Browser, text: str, told: str) -> None:
    before = numbers(page)
    page.run("document.getElementById('data-panel').open = true")
    if len(text) > 1_000_000:  # as if it were pasted
        page.run(
            "const data = new DataTransfer(); data.setData('text', 'x'.repeat(arguments[0]));"
            "document.getElementById('text').dispatchEvent(new ClipboardEvent('paste', {clipboardData: data}))",
            len(text),
        )
    else:
        page.run("document.getElementById('text').value = arguments[0]", text)
        page.click("#read")
    assert told in message(page)
    assert numbers(page) == before


@needs_browser
@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("#task=cooking", "cooking"),
        ("#kernel=magic", "magic"),
        ("#C=NaN&points=0,0,0;1,1,1", "not a finite number"),
        ("#C=1e99&points=0,0,0;1,1,1", "outside of"),
        ("#points=0,0,7", "class"),
        ("#set=constructor", "constructor"),
        ("#points=0,zero,0", "not a finite number"),
        ("#points=" + ";".join("0,0,0" for _ in range(10_000)), "10000 points"),
        ("#%E0%A4%A&points=<script>alert(1)</script>", "not a finite number"),
    ],
    ids=["task", "kernel", "nan", "large", "class", "set", "word", "many", "script"],
)  # fmt: skip
def test_links_made_by_hand_are_refused_in_words(page: Browser, url: str, link: str, told: str) -> None:
    page.run("window.location = 'about:blank'")
    page.open(url + link)
    assert told in message(page)
    page.settle()
    page.gesture([at(page, 3.5, 2.5)])
    assert_as_in_python(page)


@needs_browser
@pytest.mark.alone
def test_frames_at_300_points_do_not_hang(page: Browser, url: str) -> None:
    """From the pointer's move to the drawn picture: solve, certificate and a grid of 200 x 200.

    The quickest of some are printed in milliseconds (`-s` shows them); 50 are asked for on an idle core.
    """
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform((-3.8, -2.8), (3.8, 2.8), (300, 2)), 3)
    c = (X[:, 0] + X[:, 1] + rng.normal(0, 1.5, 300) > 0).astype(int)
    points = ";".join(f"{x:g},{y:g},{k}" for (x, y), k in zip(X, c, strict=True))
    taken = {}
    for kernel in ("linear", "poly", "rbf", "laplacian"):
        page.run("window.location = 'about:blank'")
        page.open(f"{url}#kernel={kernel}&C=1&gamma=0.5&degree=3&points={points}")
        page.settle()
        page.run(
            "const root = document.documentElement; window.times = [];"
            "new MutationObserver(() => window.times.push(Number(root.dataset.frame)))"
            ".observe(root, {attributeFilter: ['data-frame']})"
        )
        page.gesture([at(page, *X[0]), *(at(page, 0.05 * k, 0.03 * k) for k in range(40))])
        times = page.run("return window.times")
        assert len(times) > 10
        taken[kernel] = min(times)
    print(taken)
    assert max(taken.values()) <= 1000, taken


@needs_browser
def test_it_makes_no_request_and_no_noise(page: Browser, url: str) -> None:
    page.log("performance")
    page.log("browser")
    page.open(url)
    page.settle()
    asked = []
    for entry in page.log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            asked.append(event["params"]["request"]["url"].split("#")[0])
    assert {address for address in asked if not address.startswith(("data:", "about:"))} <= {url}
    assert [entry["message"] for entry in page.log("browser")] == []


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_it_fits_a_screen_and_a_phone(page: Browser, width: int, height: int, theme: str, tmp_path: Path) -> None:
    page.size(width, height)
    page.theme(theme)
    page.settle()
    wide = page.run("return document.documentElement.scrollWidth")
    assert wide <= width, "the page scrolls sideways"
    # Every control has room for a finger, and a name.
    small, nameless = page.run(
        "const all = [...document.querySelectorAll('button, input, select, textarea')].filter((e) => e.offsetParent);"
        "const name = (e) => e.getAttribute('aria-label') || e.textContent || e.labels?.[0]?.textContent || e.title;"
        "const low = all.filter((e) => e.tagName === 'BUTTON' && e.offsetHeight < 24);"
        "return [low.length, all.filter((e) => !name(e)).length]"
    )
    assert (small, nameless) == (0, 0)
    shot = tmp_path / "page.png"
    page.screenshot(shot, whole=True)
    assert shot.stat().st_size > 20_000


class _Checker(html.parser.HTMLParser):
    """Tags that are opened are closed, ids are unique, and labels and descriptions point to something."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.wanted: set[str] = set()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("for", "aria-describedby", "aria-labelledby"):
                self.wanted |= set((value or "").split())
            elif name.startswith("on") or (name in ("src", "href") and not (value or "").startswith("data:")):
                self.faults.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes another tag")


def test_the_page_is_sound_html_without_requests_or_evaluation() -> None:
    text = toy.page()
    checker = _Checker()
    checker.feed(text)
    assert checker.faults == []
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    assert checker.wanted <= set(checker.ids)
    assert {path.name for path in toy.WEB.glob("*.js")} == set(toy.SCRIPTS)
    script = "\n".join((toy.WEB / name).read_text() for name in toy.SCRIPTS)
    assert not re.search(r"\beval\b|new Function|fetch\(|XMLHttpRequest|https?://|import\(", script)
    assert "</script" not in script
    assert len((toy.WEB / "core.wasm").read_bytes()) <= 400_000
    told = re.search(r"(\d+) kB and\s+makes no request", (DOCS / "toy.md").read_text(encoding="utf-8"))
    assert told is not None
    assert len(text.encode()) / 1000 == pytest.approx(int(told[1]), abs=5)


def test_names_are_unique_among_the_scripts_that_share_a_scope() -> None:
    names = []
    for path in toy.WEB.glob("*.js"):
        names += re.findall(
            r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)", path.read_text(), re.MULTILINE
        )
    assert len(names) == len(set(names))


def test_sets_are_the_examples_of_the_notes() -> None:
    """As page/make_sets.py has written them: moved to the middle and rounded."""
    text = (toy.WEB / "sets.js").read_text()
    found = re.search(r'"rings": \{[^}]*points: "([^"]*)"', text)
    assert found is not None
    rows = np.array([[float(v) for v in point.split(",")] for point in found[1].split(";")])
    X, y = datasets.rings(60)
    np.testing.assert_allclose(rows[:, :2], X, atol=0.0051)
    np.testing.assert_array_equal(rows[:, 2], np.where(y > 0, 0, 1))
