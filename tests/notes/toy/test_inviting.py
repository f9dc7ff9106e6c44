"""What a newcomer meets: data sets and a hint, one line of proof, steps with their border, axes with names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import SVC, kernels
from mercer.notes import toy
from mercer.notes.teaching import steps as run_steps

from .browser import Browser
from .readings import at, message, needs_browser, numbers, state

pytestmark = [pytest.mark.page, needs_browser]

BLUE, ORANGE = (0, 114, 178), (213, 94, 0)


def is_shown(page: Browser, selector: str) -> bool:
    return bool(page.run("return document.querySelector(arguments[0]).checkVisibility()", selector))


def bottom(page: Browser, selector: str) -> float:
    value: float = page.run("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", selector)
    return value


def pressed(page: Browser) -> list[str]:
    names: list[str] = page.run(
        "return [...document.querySelectorAll('[data-set][aria-pressed=true]')].map((e) => e.dataset.set)"
    )
    return names


def follow(page: Browser, url: str, link: str) -> None:
    page.run("window.location = 'about:blank'")
    page.open(url + link)
    page.settle()


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_data_sets_plot_and_sliders_are_in_sight_and_the_hint_goes_after_the_first_action(
    page: Browser, url: str, width: int, height: int
) -> None:
    page.size(width, height)
    follow(page, url, "")
    assert page.run("return scrollY") == 0
    order = [bottom(page, selector) for selector in ("#sets", "#plane", "#C", "#gamma")]
    assert max(order) < height
    assert order[0] < order[1]
    assert is_shown(page, "#hint")
    drawn = page.run(
        "return [...document.querySelectorAll('#sets canvas')].map((c) =>"
        " c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0))"
    )
    assert len(drawn) >= 10
    assert all(drawn)
    page.click("[data-set='spiral']")
    page.settle()
    assert pressed(page) == ["spiral"]
    assert is_shown(page, "#hint")  # nobody has touched the plot yet
    page.gesture([at(page, 3.5, 2.5)])
    page.settle()
    assert pressed(page) == []
    assert not is_shown(page, "#hint")
    page.click("#clear")
    page.settle()
    assert is_shown(page, "#hint")
    page.keys("\t")
    page.run("document.getElementById('plane').focus()")
    page.keys("\ue007")
    page.settle()
    assert len(state(page)["X"]) == 1
    assert not is_shown(page, "#hint")


def test_a_finger_adds_and_drags_points(page: Browser) -> None:
    page.click("#clear")
    page.gesture([at(page, -1, 1)], "touch")
    page.gesture([at(page, 1, 1)], "touch")
    page.gesture([at(page, 1, 1), at(page, 1.5, 0), at(page, 2, -1)], "touch")
    np.testing.assert_allclose(state(page)["X"], [(-1, 1), (2, -1)], atol=0.05)


def test_another_task_brings_its_own_data_set_but_keeps_the_points_of_the_reader(page: Browser) -> None:
    page.click("[data-task='regress']")
    page.settle()
    assert pressed(page) == ["sine"]
    page.click("[data-task='classify']")
    page.settle()
    assert pressed(page) == ["rings"]
    page.gesture([at(page, 3.5, 2.5)])
    before = state(page)["X"]
    page.click("[data-task='novelty']")
    page.settle()
    given = state(page)
    assert given["task"] == "novelty"
    np.testing.assert_array_equal(given["X"], before)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_certificate_is_one_line_until_it_is_asked_for(page: Browser, url: str, width: int) -> None:
    page.size(width, 900)
    follow(page, url, "#set=four%20classes")
    assert not is_shown(page, "#certificate")
    line = page.run("return document.getElementById('proof').innerText").strip()
    found = re.fullmatch(r"✓ Optimal to within (\S+), proven", line)
    assert found is not None, line
    gap = numbers(page)["gap"]
    assert gap <= float(found[1]) <= 1.1 * gap  # rounded up
    assert page.element("#proof")["height"] < 30
    page.click("#proof")
    assert is_shown(page, "#certificate")
    assert page.run("return document.documentElement.scrollWidth") <= width


def test_no_optimality_is_claimed_without_a_solution(page: Browser) -> None:
    page.click("[data-kernel='linear']")
    page.click("#hard")
    page.settle()
    assert page.run("return document.getElementById('proof').innerText").strip() == "≈ No hard margin"
    page.click("#clear")
    page.settle()
    assert page.run("return document.getElementById('proof').innerText").strip() == "Add points of two classes"
    page.gesture([at(page, 1, 1)])
    page.settle()
    assert page.run("return document.getElementById('summary').textContent") == "1 point, 1 class."
    page.click("[data-task='novelty']")
    page.settle()
    assert page.run("return document.getElementById('proof').innerText").strip() == "Add two points"


def colours(page: Browser, across: list[float], down: list[float]) -> np.ndarray:
    """Colours of the plane at shares of its width and height; the places are those of whole pixels."""
    pixels = page.run(
        "const plane = document.getElementById('plane'); const context = plane.getContext('2d');"
        "return arguments[0].map((x, i) => [...context.getImageData("
        "Math.round(x * plane.width), Math.round(arguments[1][i] * plane.height), 1, 1).data])",
        across,
        down,
    )
    return np.array(pixels)


def go_to(page: Browser, step: int) -> None:
    page.run(
        "const s = document.getElementById('step'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
        str(step),
    )
    page.settle()


def f_of(kernel: Any, X: np.ndarray, beta: np.ndarray, b: float, places: np.ndarray) -> np.ndarray:
    return np.asarray(kernel(places, X)) @ beta + b


def assert_border(page: Browser, f: Any, X: np.ndarray) -> None:
    """The plane is blue where f > 0 and orange where f < 0."""
    across, down = (grid.ravel() for grid in np.meshgrid(np.arange(3, 50) / 50, np.arange(3, 36) / 40))
    places = np.column_stack([-4 + 8 * across, 3 - 6 * down])
    plain = np.linalg.norm(places[:, None] - X, axis=2).min(axis=1) > 0.3
    values = f(places)
    for shift in [(0.08, 0), (-0.08, 0), (0, 0.08), (0, -0.08)]:
        plain &= np.sign(f(places + shift)) == np.sign(values)
    seen = colours(page, across.tolist(), down.tolist())[:, :3].astype(float)
    blue = np.linalg.norm(seen - BLUE, axis=1) < np.linalg.norm(seen - ORANGE, axis=1)
    assert plain.sum() > 200
    # Dashes, slacks and names cross a few places.
    assert (blue == (values > 0))[plain].mean() > 0.97
    assert 0.03 < blue[plain].mean() < 0.97


@pytest.mark.parametrize(
    ("link", "kernel"),
    [("#set=location&open=trace", kernels.Linear()), ("#set=xor&open=trace", kernels.Gaussian(gamma=0.5))],
    ids=["linear", "gaussian"],
)
def test_every_step_draws_the_border_of_its_own_alpha(page: Browser, url: str, link: str, kernel: Any) -> None:
    follow(page, url, link)
    page.theme("light")
    page.run("document.getElementById('hint').style.display = 'none'")
    given = state(page)
    X, y, C = given["X"], np.where(given["c"] == 0, 1, -1), float(given["C"])
    theirs = run_steps(X, y, kernel=kernel, C=C, rule="second order", tol=1e-3, max_iter=1000)
    assert page.run("return document.getElementById('step-value').textContent") == "solution"
    assert int(page.run("return document.getElementById('step').max")) == len(theirs.steps) + 1
    model = SVC(kernel=kernel, C=C, tol=1e-9).fit(X, y)
    at_solution = numbers(page)
    assert at_solution["dual"] == pytest.approx(model.certificate_.dual, rel=1e-8)
    assert_border(page, model.decision_function, X)

    differs = 0
    for k in (1, 2, 3, len(theirs.steps) // 2, len(theirs.steps)):
        go_to(page, k)
        step = theirs.steps[k - 1]
        ours = numbers(page)
        assert ours["dual"] == pytest.approx(step.dual, rel=1e-8)
        assert ours["b"] == pytest.approx(step.b, rel=1e-8, abs=1e-8)
        proof = mercer.certify(SVC(kernel=kernel, C=C), X, y, step.alpha)
        assert ours["dual"] <= proof.primal
        assert ours["gap"] >= proof.gap * (1 - 1e-7)
        said = re.search(r"Step (\d+): gap at most (\S+)", page.run("return document.body.innerText"))
        assert said is not None
        assert int(said[1]) == k
        assert float(said[2]) >= ours["gap"]

        def f(places: np.ndarray, step: Any = step) -> np.ndarray:
            return f_of(kernel, X, y * step.alpha, step.b, places)

        assert_border(page, f, X)
        differs += bool((np.sign(f(X)) != np.sign(model.decision_function(X))).any())
    assert differs >= 2  # so that the border of the solution would have failed

    go_to(page, 0)
    across, down = (grid.ravel() for grid in np.meshgrid(np.arange(5, 46) / 50, np.arange(5, 36) / 40))
    plain = np.linalg.norm(np.column_stack([-4 + 8 * across, 3 - 6 * down])[:, None] - X, axis=2).min(axis=1) > 0.3
    assert (colours(page, across.tolist(), down.tolist())[plain, 3] == 0).mean() > 0.95  # nothing is painted: f = 0
    assert numbers(page)["dual"] == 0

    go_to(page, 2)
    page.run("document.getElementById('trace-panel').open = false")  # then the plane shows the solution again
    page.settle()
    assert numbers(page)["dual"] == pytest.approx(model.certificate_.dual, rel=1e-8)


def test_a_point_that_is_dragged_at_a_step_moves_the_border_of_that_step(page: Browser, url: str) -> None:
    follow(page, url, "#set=location&open=trace")
    go_to(page, 4)
    x, y = state(page)["X"][0]
    page.gesture([at(page, x, y), at(page, -2, 1.5), at(page, -3, 2)])
    page.settle()
    given = state(page)
    theirs = run_steps(
        given["X"],
        np.where(given["c"] == 0, 1, -1),
        kernel="linear",
        C=float(given["C"]),
        rule="second order",
        tol=1e-3,
    )
    assert page.run("return document.getElementById('step').value") == "4"
    assert numbers(page)["dual"] == pytest.approx(theirs.steps[3].dual, rel=1e-8)
    page.click("#forward")
    assert numbers(page)["dual"] == pytest.approx(theirs.steps[4].dual, rel=1e-8)


def test_play_goes_from_the_start_to_the_solution(page: Browser, url: str) -> None:
    follow(page, url, "#set=interval&open=trace")
    solution = numbers(page)
    page.click("#play")
    assert page.run("return document.getElementById('step').value") in ("0", "1")
    page.wait("return Number(document.getElementById('step').value) >= 2")
    seen = page.run(
        "return [document.getElementById('summary').textContent,"
        " document.querySelector('[data-name=gap]').dataset.value, document.getElementById('proof').clientHeight]"
    )
    told = float(seen[0].rpartition(" ")[2].rstrip(".").replace("\u2060", ""))
    assert float(seen[1]) <= told <= 1.1 * float(seen[1])  # the text below the plot is that of the step
    assert seen[2] < 30  # one line
    page.wait("return document.getElementById('step-value').textContent === 'solution'")
    assert numbers(page) == solution
    assert page.run("return document.getElementById('play').textContent") == "Play"


def test_sliders_say_what_they_mean_for_the_task_and_the_kernel(page: Browser) -> None:
    def meaning(name: str) -> str:
        return str(page.run("return document.getElementById(arguments[0] + '-means').textContent", name))

    assert meaning("C") == "penalty of points inside the margin"
    assert meaning("gamma") == "how local the kernel is"
    page.click("[data-kernel='poly']")
    page.settle()
    assert meaning("gamma") == "factor of the inner product"  # a polynomial is not local
    page.click("[data-task='regress']")
    page.settle()
    assert meaning("C") == "penalty of errors beyond ε"  # regression has no margin


def test_without_steps_the_panel_says_so_across_its_width(page: Browser, url: str) -> None:
    follow(page, url, "#set=sine&open=trace")
    widths = page.run("return ['step-text', 'step-box'].map((id) => document.getElementById(id).clientWidth)")
    assert widths[0] == widths[1]
    colours = page.run(
        "return ['play', 'back'].map((id) => getComputedStyle(document.getElementById(id)).backgroundColor)"
    )
    assert colours[0] == colours[1]  # Play looks switched off, too


@pytest.mark.parametrize("height", [600, 720, 900])
def test_the_whole_plot_is_in_sight_on_a_low_screen(page: Browser, url: str, height: int) -> None:
    page.size(1280, height)
    follow(page, url, "")
    assert bottom(page, "#plane") <= height
    plane = page.element("#plane")
    assert plane["width"] == pytest.approx(plane["height"] * 4 / 3, rel=0.01)  # circles stay circles


def test_a_point_that_is_dragged_out_of_the_plot_stays_at_its_edge(page: Browser) -> None:
    page.click("#clear")
    page.gesture([at(page, 1, 1)])
    page.gesture([at(page, 1, 1), at(page, 3, 1), (1200, at(page, 3, 1)[1])])
    np.testing.assert_allclose(state(page)["X"], [(4, 1)], atol=0.05)


# --- axes and rings ---------------------------------------------------------------------------------------------------


def texts_of(page: Browser, url: str, link: str) -> set[str]:
    """The texts that the page writes on its canvases."""
    found = page.chrome(
        "Page.addScriptToEvaluateOnNewDocument",
        {
            "source": "window.texts = []; const own = CanvasRenderingContext2D.prototype.fillText;"
            "CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {"
            " window.texts.push(text); return own.call(this, text, ...rest); };"
        },
    )
    try:
        follow(page, url, link)
        return set(page.run("return window.texts"))
    finally:
        page.chrome("Page.removeScriptToEvaluateOnNewDocument", found)


@pytest.mark.parametrize(
    ("link", "names"),
    [
        ("#set=rings", ("x₁", "x₂")),
        ("#set=sine", ("x", "y")),
        (
            toy.link("classify", [(0, 1, 0), (1, 0, 1)], ("petal length", "a+b, <i>&c</i>")),
            ("petal length", "a+b, <i>&c</i>"),
        ),
        (toy.link("regress", [(0, 1, 0), (1, 0, 0)], ("m" * 59, "€")), ("m" * 29 + "…", "€")),
    ],
    ids=["rings", "sine", "named", "long"],
)  # fmt: skip
def test_axes_have_names(page: Browser, url: str, link: str, names: tuple[str, str]) -> None:
    texts = texts_of(page, url, link)
    assert {f"{names[0]} →", f"↑ {names[1]}"} <= texts
    again = texts_of(page, url, page.run("return location.hash"))  # the link that the page writes
    assert {f"{names[0]} →", f"↑ {names[1]}"} <= again


def test_names_come_from_the_header_and_go_with_the_points(page: Browser) -> None:
    page.run("document.getElementById('data-panel').open = true")
    page.run("document.getElementById('text').value = arguments[0]", 'width,"height",kind\n1,2,a\n-1,0,b\n0,1,a\n')
    page.click("#read")
    page.settle()
    assert message(page) == ""
    assert (state(page)["x"], state(page)["y"]) == ("width", "height")
    page.click("#write-csv")
    assert page.run("return document.getElementById('text').value").startswith("width,height,label\n")
    page.click("#read")
    assert (state(page)["x"], state(page)["y"]) == ("width", "height")
    page.click("[data-set='rings']")
    assert "x" not in state(page)
    page.click("#undo")
    assert state(page)["x"] == "width"


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_500_points_stay_readable_when_all_are_support_vectors(
    page: Browser, url: str, width: int, height: int
) -> None:
    """Each point shows the colour of its class, and the regions are seen between the rings."""
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform((-3.8, -2.7), (3.8, 2.7), (500, 2)), 2)
    c = (X[:, 0] > np.median(X[:, 0])).astype(int)
    page.size(width, height)
    page.theme("light")
    follow(
        page, url, toy.link("classify", [(x, y, int(k)) for (x, y), k in zip(X, c, strict=True)], C=0.001, gamma=0.5)
    )
    page.run("document.getElementById('hint').style.display = 'none'")
    assert numbers(page)["bounded"] >= 490
    seen = colours(page, ((X[:, 0] + 4) / 8).tolist(), ((3 - X[:, 1]) / 6).tolist())[:, :3]
    own = np.linalg.norm(seen - np.where(c[:, None] == 0, BLUE, ORANGE), axis=1) < 40
    assert own.mean() > 0.9
    across, down = (grid.ravel() for grid in np.meshgrid(np.arange(2, 99) / 100, np.arange(2, 99) / 100))
    share = 1 - covered(page, across, down).mean()
    assert share > (0.75 if width > 1000 else 0.45)


def covered(page: Browser, across: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Whether something lies on the shade of the regions, which changes slowly, at each place."""
    pixels = colours(page, across.tolist(), down.tolist())
    return np.asarray(pixels[:, 3] > 120)  # the shade is at most 0.44 opaque, a disc on it more


def test_the_page_that_is_written_has_no_link_unless_it_is_told_one(page: Browser, tmp_path: Path) -> None:
    assert "<a " not in toy.page()
    path = tmp_path / "toy.html"
    path.write_text(toy.page(home="manual/index.html?a=1&b=2"), encoding="utf-8")
    follow(page, path.as_uri(), "")
    link = page.run("const a = document.querySelector('a'); return [a.href, a.target, a.offsetHeight > 0]")
    assert link == [(tmp_path / "manual/index.html").as_uri() + "?a=1&b=2", "_top", True]
    for bad in ("javascript:alert(1)", "data:text/html,x", "ftp://example.org"):
        with pytest.raises(ValueError, match="neither an http address nor a relative one"):
            toy.page(home=bad)


@pytest.mark.parametrize("width", [1280, 768, 390, 340])
def test_nothing_scrolls_sideways_with_every_panel_open(page: Browser, url: str, width: int) -> None:
    page.size(width, 900)
    for link in ("#set=location&open=trace", "#set=sine", "#kernel=poly&set=rings", "#set=cloud"):
        follow(page, url, link)
        page.run("for (const e of document.querySelectorAll('details')) e.open = true")
        page.settle()
        assert page.run("return document.documentElement.scrollWidth") <= width, link
        reaching = page.run(
            "return [...document.querySelectorAll('main *, header *')]"
            ".filter((e) => !e.closest('#sets') && e.id !== 'file' && e.getClientRects().length)"
            ".filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 80))"
        )
        assert reaching == [], json.dumps(reaching)
