"""Diagrams of boxes and arrows, which pages ask for as they ask for the pictures of figures.py."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

BLUE, ORANGE, GREEN, GREY = "C0", "C1", "C2", "#777777"


def new(width, height):
    return plt.subplots(figsize=(width, height), layout="constrained")


def draw_box(axes, x, y, width, text, colour, height=0.6):
    """Draw a box whose left edge is at x and whose middle is at the height y, with its text."""
    place = (x, y - height / 2)
    axes.add_patch(FancyBboxPatch(place, width, height, boxstyle="round,pad=0.03", fc=colour, alpha=0.18, ec=colour))
    axes.text(x + 0.1, y, text, va="center", fontsize=9)


def draw_arrow(axes, start, end, colour=GREY, **more):
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour, **more})


def tables():
    """How a table's columns become numbers."""
    figure, axes = new(7.4, 2.9)
    rows = [
        ("id", "an identifier", "left out"),
        ("age", "number with gaps", "standardised, median in the gaps, a mark where they were"),
        ("plan", "category", "one column for each level, gaps a level of their own"),
        ("city", "category", "one column for each level, new ones known as new"),
        ("since", "date", "seconds, and the time of year"),
    ]
    for i, (name, kind, becomes) in enumerate(rows):
        y = len(rows) - 1 - i
        for x, width, text, colour in ((0, 1.1, name, BLUE), (1.4, 2.4, kind, GREY), (4.1, 6.9, becomes, GREEN)):
            draw_box(axes, x, y, width, text, colour)
        for x in (1.13, 3.83):
            draw_arrow(axes, (x, y), (x + 0.24, y))
    axes.set(xlim=(-0.1, 11.2), ylim=(-0.6, len(rows) - 0.3))
    axes.axis("off")
    return figure


def which_estimator():
    figure, axes = new(8.6, 4.4)
    leaves = [
        ("a class", "SVC", "LinearSVC, NystromRLSClassifier"),
        ("a number", "SVR, RLSRegressorCV", "LinearSVR, NystromRLS"),
        ("a quantile", "QuantileSVR", ""),
        ("what is unlike the rest", "OneClassSVM, SVDD", ""),
        ("no targets", "KernelPCA, KernelKMeans", "with n_landmarks"),
    ]
    heads = ((0.1, "you want"), (2.9, "up to some 10,000 rows"), (6.1, "more rows"))
    for x, text in heads:
        axes.text(x, len(leaves) - 0.35, text, weight="bold", fontsize=10)
    for i, leaf in enumerate(leaves):
        y = len(leaves) - 1 - i
        for (x, _), text, width, colour in zip(heads, leaf, (2.3, 2.7, 3.2), (GREY, BLUE, ORANGE), strict=True):
            if not text:
                continue
            draw_box(axes, x, y, width, text, colour)
            if x > 1:
                draw_arrow(axes, (x - 0.4, y), (x - 0.04, y))
    axes.set(xlim=(0, 9.5), ylim=(-0.6, len(leaves)))
    axes.axis("off")
    return figure


def formats():
    """What goes in, and what comes out."""
    figure, axes = new(7.4, 2.8)
    columns = (
        (0.0, 2.6, ("LIBSVM and SVMlight text", "tables: CSV, data frames", "LIBSVM models"), GREY),
        (4.0, 2.0, ("", "an estimator", ""), BLUE),
        (7.4, 3.4, (".mercer: all of it, checked", "LIBSVM model", "ONNX, C source"), GREEN),
    )
    for x, width, texts, colour in columns:
        for y, text in zip((2, 1, 0), texts, strict=True):
            if not text:
                continue
            draw_box(axes, x, y, width, text, colour)
    for y in (0, 1, 2):
        draw_arrow(axes, (2.7, y), (3.93, 1))
        draw_arrow(axes, (6.1, 1), (7.33, y))
    axes.set(xlim=(-0.1, 11), ylim=(-0.5, 2.5))
    axes.axis("off")
    return figure


def course_of_a_fit():
    figure, axes = new(8, 2.6)
    boxes = [
        ("fit(X, y)", "estimators/", GREY),
        ("read, check,\nmerge, bind", "Fit.of", BLUE),
        ("problems and\nsolvers", "_tasks", BLUE),
        ("attempt", "solvers/", ORANGE),
        ("certify", "certificates/", GREEN),
        ("attributes,\nreport", "_conclude", BLUE),
    ]
    for i, (text, where, colour) in enumerate(boxes):
        box = FancyBboxPatch((1.9 * i, 0), 1.4, 0.8, boxstyle="round,pad=0.05", fc=colour, alpha=0.18, ec=colour)
        axes.add_patch(box)
        axes.text(1.9 * i + 0.7, 0.4, text, ha="center", va="center", fontsize=9)
        axes.text(1.9 * i + 0.7, -0.22, where, ha="center", va="center", fontsize=8, color=GREY, family="monospace")
        if i:
            draw_arrow(axes, (1.9 * i - 0.43, 0.4), (1.9 * i - 0.07, 0.4))
    draw_arrow(axes, (1.9 * 4 + 0.6, 0.9), (1.9 * 3 + 0.8, 0.9), GREEN, connectionstyle="arc3,rad=0.35")
    axes.text(1.9 * 3.5 + 0.7, 1.45, "gap or violation too large: continue", ha="center", fontsize=8, color=GREEN)
    axes.text(1.9 * 3.5 + 0.7, -0.62, "places/ → _core: kernel values, pair steps, bounds", ha="center", fontsize=8)
    axes.set(xlim=(-0.2, 11.2), ylim=(-0.8, 1.7))
    axes.axis("off")
    return figure


def cluster():
    """Show what the client of a Dask cluster holds and does, and what the workers do."""
    figure, axes = new(8, 3)
    for y, name in ((2, "worker 1: chunks of X"), (1, "worker 2: chunks of X"), (0, "worker 3: chunks of X")):
        draw_box(axes, 6.4, y, 3.0, name, BLUE)
        draw_arrow(axes, (4.2, 1.15), (6.3, y + 0.1))
        draw_arrow(axes, (6.3, y - 0.1), (4.2, 0.85), GREEN)
    draw_box(axes, 0.4, 1, 3.7, "client: α, y, weights, f,\nthe rows of a working set", ORANGE, height=1.0)
    axes.text(5.2, 2.35, "working set, its change of α", ha="center", fontsize=8, color=GREY)
    axes.text(5.2, -0.35, "sums with K and their bounds", ha="center", fontsize=8, color=GREEN)
    axes.text(2.25, -0.1, "pair steps, certificate", ha="center", fontsize=8, color=ORANGE)
    axes.set(xlim=(0.2, 9.6), ylim=(-0.6, 2.6))
    axes.axis("off")
    return figure
