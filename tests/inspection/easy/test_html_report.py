"""The HTML report: one file, no script, no network, escaped text, and figures that agree with naive computations."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.cli.main import main
from mercer.inspection.easy.evidence import (
    dependence_curves,
    missed_rows,
    reliability,
    shades_of,
    shown_cell,
    shown_probability,
)
from mercer.inspection.easy.svg import Plot, escape, quantity, tick_places

EVIL = "<script>alert('1')</script>"


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "area": rng.uniform(40, 160, n).round(1),
            EVIL: rng.choice(["Ulm", "<b>Bonn</b>", None], n),
            "sold": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    price = 2000 * frame["area"] + 40_000 * (frame[EVIL] == "Ulm") + 9000 * rng.normal(size=n)
    return frame, price.to_numpy().round()


@pytest.fixture(scope="module")
def numbers():
    frame, price = table()
    price[[5, 50]] *= 100
    return mercer.easy(frame.assign(price=price), target="price")


@pytest.fixture(scope="module")
def classes():
    frame, price = table()
    return mercer.easy(frame.assign(dear=np.where(price > np.median(price), "a\x1b<i>", "b")), target="dear")


@pytest.fixture(scope="module")
def three():
    frame, price = table()
    return mercer.easy(frame.assign(kind=np.digitize(price, np.quantile(price, [0.3, 0.6]))), target="kind")


@pytest.mark.parametrize("which", ["numbers", "classes", "three"])
def test_one_file_without_script_or_network(which, request, tmp_path):
    model = request.getfixturevalue(which)
    model.report(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(html)
    assert page.open == []  # every tag is closed
    assert not {"script", "img", "link", "iframe", "object", "b>bonn"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("href", "src", "xlink:href")]
    assert "url(" not in html
    assert "http" not in re.sub("http-equiv", "", html)
    assert "\x1b" not in html
    text = " ".join(" ".join(page.text).split())
    assert EVIL in text
    for title in (
        "How good",
        "What matters",
        "Where it is wrong",
        "How sure",
        "What next",
        "Certificate",
        "To do it again",
        "How each column was read",
    ):
        assert title in text, title
    assert model.figures.headline[1:].replace("\x1b", "\\x1b") in text
    assert "svg" in page.tags
    assert model.table.estimator_.certificate_.verdict in text
    assert "nan" not in html.lower()


def test_the_code_does_it_again(numbers, tmp_path):
    frame, price = table()
    model = mercer.easy(frame, target=price, drop=["sold"], random_state=3)
    model.report(tmp_path / "r.html")
    text = "".join(Page((tmp_path / "r.html").read_text(encoding="utf-8")).text)
    assert "mercer.easy(table, target='y', drop=['sold'], random_state=3)" in text
    numbers.report(tmp_path / "r.html")
    text = "".join(Page((tmp_path / "r.html").read_text(encoding="utf-8")).text)
    assert "model = mercer.easy(table, target='price')\n" in text
    frame.assign(price=price).to_csv(tmp_path / "t.csv", index=False)
    mercer.easy(tmp_path / "t.csv", target="price").report(tmp_path / "r.html")
    text = "".join(Page((tmp_path / "r.html").read_text(encoding="utf-8")).text)
    assert f"mercer.easy({str(tmp_path / 't.csv')!r}, target='price')" in text
    assert "rows of t.csv" in text


def test_dependence_is_the_mean_of_predictions(numbers, classes, three):
    frame, _ = table()
    for model, predict in (
        (numbers, lambda X: numbers.predict(X)[:, None]),
        (classes, lambda X: classes.predict_proba(X)[:, 1:]),
        (three, lambda X: three.predict_proba(X)),
    ):
        rows = frame.iloc[np.sort(np.random.default_rng(0).permutation(len(frame))[:100])]
        area, town, _ = sorted(dependence_curves(model, ["area", EVIL, "sold"]), key=lambda one: one.name != "area")
        if town.name != EVIL:
            town = next(one for one in dependence_curves(model, [EVIL]))
        for k in (0, 17):
            expected = predict(rows.assign(area=area.x[k])).mean(axis=0)
            np.testing.assert_allclose([line[k] for _, line in area.lines], expected, rtol=1e-9)
        assert sorted(town.categories) == ["<b>Bonn</b>", "Ulm", "missing"]
        expected = predict(rows.assign(**{EVIL: "Ulm"})).mean(axis=0)
        place = town.categories.index("Ulm")
        np.testing.assert_allclose([line[place] for _, line in town.lines], expected, rtol=1e-9)


def test_missed_rows_are_those_with_the_largest_errors(numbers, classes):
    frame, _ = table()
    held = numbers.training.held_out
    errors = np.abs(held.truth - held.answers)
    missed = missed_rows(numbers)
    assert [row.number for row in missed] == (1 + np.argsort(-errors)[:8]).tolist()
    assert [row.is_outlier for row in missed] == [True, True] + [False] * 6
    assert missed[2].reasons[0][0] == "area"
    row = missed[2].number - 1
    assert missed[2].reasons[0][1] == f"{frame['area'][row]:.6g}"
    model, background = held.models[held.fold[row]], held.background(held.fold[row], 0)
    values = model.explain(frame.iloc[[row]], frame.iloc[background]).values[0]
    shown = f"{'+' if values[0] >= 0 else '−'}{float(f'{abs(values[0]):.4g}'):,.0f}"
    assert missed[2].reasons[0][2] == shown
    assert row not in held.trained_on[held.fold[row]]
    for one in missed_rows(classes):
        assert one.truth != one.answer
        assert "probable)" in one.detail


def test_reliability_counts_what_happened(classes, three):
    for model in (classes, three):
        held = model.training.held_out
        p = held.probabilities(model.training.frame, 0)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        found = reliability(model)
        truth = held.truth[:, None] == model.classes_
        happened = truth[:, 1] if len(model.classes_) == 2 else truth
        said = p[:, 1] if len(model.classes_) == 2 else p
        for mean, share, low, high in zip(found.predicted, found.happened, found.low, found.high, strict=True):
            here = np.floor(said * 10).clip(max=9) == np.floor(10 * mean)
            assert mean == pytest.approx(said[here].mean())
            assert share == pytest.approx(happened[here].mean())
            assert low <= share <= high
        assert 0.8 < found.right_when_sure <= 1


def test_intervals_hold_what_they_promise(numbers):
    shares = numbers.training.held_out.coverage(np.array([0.5, 0.8, 0.9, 0.95]), 0)
    np.testing.assert_allclose(shares, [0.5, 0.8, 0.9, 0.95], atol=0.07)


def test_text_and_ticks():
    assert escape("<a href='x'>\x1b\u202e") == "&lt;a href=&#x27;x&#x27;&gt;\\x1b\\u202e"
    assert tick_places(0.0, 1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert tick_places(-3.0, 17.0) == pytest.approx([0, 5, 10, 15])
    assert [shown_probability(p) for p in (0.9996, 0.5, 0.004)] == ["> 99%", "50%", "< 1%"]  # none is certain
    assert tick_places(2.0, 2.0) == [2.0]
    assert tick_places(100.0, 86_000.0, unit=":") == [21_600, 43_200, 64_800]
    assert tick_places(0.0, 1000.0, unit=":") == [0, 300, 600, 900]
    assert tick_places(0.0, 4e6, unit=":") == [k * 864_000 for k in range(5)]
    assert quantity(-71_312.0, "km²") == "−71,310\u00a0km²"
    assert shown_cell(float("nan")) == shown_cell(None) == "missing"
    assert shown_cell("word " * 30) == ("word " * 30)[:59] + "…"
    np.testing.assert_allclose(shades_of([1, 2, 3, None]), [0.0, 0.5, 1.0, np.nan], atol=0.06)
    assert np.isnan(shades_of(["a", "b"])).all()
    plot = Plot((0.0, 10.0), (0.0, 1.0), "x", width=100.0, left=0.0)
    assert (plot.x(0), plot.x(10)) == (0.0, 88.0)
    assert plot.y(1.0) < plot.y(0.0)


def test_times_have_clock_ticks_and_no_colon_as_a_unit(tmp_path):
    rng = np.random.default_rng(0)
    seconds = rng.integers(0, 86_400, 90)
    clock = [f"{t // 3600:02d}:{t % 3600 // 60:02d}:{t % 60:02d}" for t in seconds]
    frame = pd.DataFrame({"from": clock, "x": rng.normal(size=90)})
    late = np.where(seconds + 9000 * rng.normal(size=90) > 43_200, "yes", "no")
    model = mercer.easy(frame.assign(late=late), target="late")
    curve = dependence_curves(model, ["from"])[0]
    assert [curve.x_label(place) for place in curve.x_ticks] == ["6:00:00", "12:00:00", "18:00:00"]
    model.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert ", :" not in text
    assert " in :" not in text
    assert ">5:00</text>" not in text
    run = [f"{t // 60}:{t % 60:02d}" for t in (300 + 60 * frame["x"] + 9 * rng.normal(size=90)).astype(int)]
    model = mercer.easy(frame[["x"]].assign(run=run), target="run")
    model.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert ">5:00</text>" in text
    assert " in :" not in text


def test_categories_show_predictions_in_the_unit_of_the_target(tmp_path):
    rng = np.random.default_rng(0)
    shop, area = rng.choice(["north", "south"], 80), rng.uniform(20, 90, 80)
    price = 10_000 * (shop == "north") + 500 * area + 900 * rng.normal(size=80) + 20_000
    frame = pd.DataFrame({"shop": shop, "area": [f"{one:.1f} m²" for one in area]})
    model = mercer.easy(frame.assign(price=[f"{one:,.0f} €" for one in price]), target="price")
    curve = next(one for one in dependence_curves(model, ["shop", "area"]) if one.name == "shop")
    value = curve.lines[0][1][0]
    assert curve.show(value) == f"{float(f'{value:.4g}'):,.0f}\u00a0€"
    model.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "mean prediction in € by area in m²" in text


def test_sentences_of_the_report(tmp_path, numbers):
    numbers.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "another unit?</li>" in text
    assert "The model hardly predicts" not in text
    rng = np.random.default_rng(1)
    noise = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"]).assign(y=rng.normal(size=80))
    mercer.easy(noise, target="y").report(tmp_path / "r.html")
    assert "The model hardly predicts &#x27;y&#x27;" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_codes_are_grey_and_options_stay_on_one_line(tmp_path):
    rng = np.random.default_rng(3)
    code, size = rng.choice([5411, 5812, 5999], 90), rng.normal(size=90)
    frame = pd.DataFrame({"mcc": code, "size": size, "y": 4.0 * (code == 5812) + size + 0.1 * rng.normal(size=90)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    page = tmp_path / "t.html"
    words = ["easy", str(tmp_path / "t.csv"), "--target", "y", "--html", str(page), "-q", "-o", str(tmp_path / "m")]
    assert main(words) == 0
    html = page.read_text(encoding="utf-8")
    swarm = {row.split("<b>")[0]: row for row in html.split('<div class="row"><span>')[1:]}
    assert swarm["mcc"].count('class="grey"') == swarm["mcc"].count("<circle") > 0
    assert swarm["size"].count('class="grey"') == 0 < swarm["size"].count("<circle")
    assert '<span class="nowrap">--target</span> y <span class="nowrap">--html</span>' in html


def test_few_rows_have_a_report(tmp_path):
    frame, price = table(12)
    mercer.easy(frame.assign(price=price), target="price", machine="svr").report(tmp_path / "r.html")
    dear = np.where(price > np.sort(price)[-4], "yes", "no")
    mercer.easy(frame.assign(dear=dear), target="dear").report(tmp_path / "r.html")
    assert "How good" in (tmp_path / "r.html").read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    many = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"]).assign(y=[f"c{k % 20}" for k in range(200)])
    mercer.easy(many, target="y").report(tmp_path / "r.html")
    assert "The 12 hardest of 20 classes" in (tmp_path / "r.html").read_text(encoding="utf-8")
