"""Numbers as people write them, in sixty tables made afresh: every source reads them as a person would, or asks.

Writers of numbers stand here and share nothing with the reader: each formats a known value in one spelling. A table
has one such column, with odd cells at its start, in its middle or at its end, and is written to CSV, Parquet, Arrow
and Excel files and to frames of pandas and polars.
"""

import math
import os

import numpy as np
import pandas as pd
import polars as pl

from mercer.tables.choice import ColumnOptions, encodings_for, guesses
from mercer.tables.encodings import DroppedColumn, Numbers
from mercer.tables.frame import frame_of
from mercer.tables.reading import read_frame

SEED = int(os.environ.get("MERCER_TORTURE_SEED", "20261118"))
N_ROWS = 60


def grouped(value, mark, decimal, digits):
    """Write a number with groups of three digits."""
    whole, _, rest = f"{abs(value):.{digits}f}".partition(".")
    groups = []
    while whole:
        groups.insert(0, whole[-3:])
        whole = whole[:-3]
    sign = "-" if value < 0 else ""
    return sign + mark.join(groups) + (decimal + rest if rest else "")


def accounting(text):
    return f"({text[1:]})" if text.startswith("-") else text


def duration(value):
    hours, minutes = divmod(int(value) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def scientific(value, decimal):
    exponent = math.floor(math.log10(abs(value)))
    return f"{value / 10**exponent:.4f}".replace(".", decimal) + f"E{exponent:+03d}"


def clock(value):
    return f"{int(value) // 3600}:{int(value) // 60 % 60:02d}:{int(value) % 60:02d}"


def times(rng):
    return rng.integers(60, 80_000, N_ROWS).astype(float)


def amounts(rng):
    return (np.exp(rng.normal(7, 2, N_ROWS)) * rng.choice([1, 1, 1, -1], N_ROWS)).round(2)


def sizes(rng):
    return rng.uniform(1, 900, N_ROWS).round(1)


def counts(rng):
    return rng.integers(1, 3_000_000, N_ROWS).astype(float)


# Name of the spelling: how values are drawn, and how one is written.
SPELLINGS = {
    "plain": (amounts, lambda v: f"{v:.2f}"),
    "decimal comma": (amounts, lambda v: f"{v:.2f}".replace(".", ",")),
    "English": (amounts, lambda v: grouped(v, ",", ".", 2)),
    "German": (amounts, lambda v: grouped(v, ".", ",", 2)),
    "French, blank": (amounts, lambda v: grouped(v, " ", ",", 2)),
    "French, U+00A0": (amounts, lambda v: grouped(v, "\u00a0", ",", 2)),
    "French, U+202F": (amounts, lambda v: grouped(v, "\u202f", ",", 2)),
    "Swiss": (amounts, lambda v: grouped(v, "'", ".", 2)),
    "Swiss, typographic": (amounts, lambda v: grouped(v, "’", ".", 2)),
    "blank and point": (amounts, lambda v: grouped(v, " ", ".", 2)),
    "accounting": (amounts, lambda v: accounting(grouped(v, ",", ".", 2))),
    "accounting in dollars": (
        amounts,
        lambda v: accounting(grouped(v, ",", ".", 2).replace("-", "-$") if v < 0 else "$" + grouped(v, ",", ".", 2)),
    ),
    "Unicode minus": (amounts, lambda v: grouped(v, " ", ",", 2).replace("-", "−")),
    "leading plus": (amounts, lambda v: f"{v:+.2f}"),
    "scientific": (amounts, lambda v: scientific(v, ".")),
    "scientific, comma": (amounts, lambda v: scientific(v, ",")),
    "percent": (sizes, lambda v: f"{v} %"),
    "percent, tight and comma": (sizes, lambda v: f"{v}%".replace(".", ",")),
    "euro behind": (amounts, lambda v: grouped(v, ".", ",", 2) + " €"),
    "euro before": (amounts, lambda v: "€ " + grouped(v, ",", ".", 2)),
    "code behind": (amounts, lambda v: grouped(v, "\u00a0", ",", 2) + " EUR"),
    "code before": (amounts, lambda v: "CHF " + grouped(v, "'", ".", 2)),
    "kilometres": (sizes, lambda v: f"{v} km"),
    "kilometres, comma": (sizes, lambda v: f"{v} km".replace(".", ",")),
    "kWh, tight": (sizes, lambda v: f"{v}kWh"),
    "temperature": (sizes, lambda v: f"{v} °C"),
    "speed": (sizes, lambda v: f"{v} km/h"),
    "years": (lambda rng: rng.integers(1, 90, N_ROWS).astype(float), lambda v: f"{v:.0f} year" + "s" * int(v != 1)),
    "clock": (times, clock),
    "duration": (lambda rng: times(rng) // 60 * 60, duration),
    "whole, blanks": (counts, lambda v: grouped(v, " ", ",", 0)),
    "whole, English": (counts, lambda v: grouped(v, ",", ".", 0)),
    "whole, German": (counts, lambda v: grouped(v, ".", ",", 0)),
    "Indian": (counts, lambda v: indian(v)),
    "Dutch, no cents": (counts, lambda v: f"€ {grouped(v, '.', ',', 0)},-"),
    "Arabic": (sizes, lambda v: grouped(v, "٬", "٫", 2).translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))),
    "rent": (sizes, lambda v: f"{v} €/m²".replace(".", ",")),
    "square metres": (sizes, lambda v: f"{v} m2"),
    "consumption": (sizes, lambda v: f"{v} l/100 km"),
}
# Cells that are no numbers, which a person takes for missing values, or that make the column unreadable.
MISSING = ("", "NA", "n/a", None)
WORDS = ("unknown", "k.A.", "-")
MISTAKES = ("7/5", "n2k", "12 or 13")


def indian(value):
    text = f"{value:.0f}"
    head, tail = text[:-3], text[-3:]
    parts = []
    while head:
        parts.insert(0, head[-2:])
        head = head[:-2]
    return ",".join([*parts, tail])


def table(number):
    """Return the texts of a column, its values (NaN if missing), and the kind of its odd cells."""
    rng = np.random.default_rng([SEED, number])
    name = list(SPELLINGS)[number % len(SPELLINGS)]
    draw, write = SPELLINGS[name]
    values = draw(rng)
    texts = [write(value) for value in values]
    odd = ("none", "missing", "words", "mistake")[int(rng.integers(4))]
    where = (0, N_ROWS // 2, N_ROWS - 1)[int(rng.integers(3))]
    if odd != "none":
        texts[where] = str(rng.choice({"missing": MISSING[:3], "words": WORDS, "mistake": MISTAKES}[odd]))
        values[where] = np.nan
    return name, texts, values, odd


def sources(texts, folder):
    """Return the frames of all sources of a table."""
    other = [["red", "green", "blue"][k % 3] for k in range(N_ROWS)]
    frame = pl.DataFrame({"x": texts, "z": other})
    frame.write_csv(folder / "t.csv", separator=";")
    frame.write_parquet(folder / "t.parquet")
    frame.write_ipc(folder / "t.arrow")
    made = {
        "pandas": frame_of(pd.DataFrame({"x": texts, "z": other})),
        "polars": frame_of(frame),
        "CSV": read_frame(folder / "t.csv"),
        "Parquet": read_frame(folder / "t.parquet"),
        "Arrow": read_frame(folder / "t.arrow"),
    }
    try:
        import openpyxl
        import python_calamine  # noqa: F401
    except ModuleNotFoundError:
        return made
    book = openpyxl.Workbook()
    for row in [["x", "z"], *zip(texts, other, strict=True)]:
        book.active.append(row)
    book.save(folder / "t.xlsx")
    return {**made, "Excel": read_frame(folder / "t.xlsx")}


def outcome(frame):
    """Return the numbers of the column as read; or the refusal, or the question why it is left out, as a text."""
    options = ColumnOptions()
    try:
        encodings = encodings_for(frame, options, np.ones(len(frame)))
    except ValueError as error:
        return str(error)
    asked = guesses(frame, encodings, options)
    if isinstance(encodings[0], Numbers):
        return encodings[0].values(frame["x"])
    return asked.get("x", "left out in silence" if isinstance(encodings[0], DroppedColumn) else "a category")


def test_sixty_tables(tmp_path):
    as_a_person, silent = 0, []
    for number in range(60):
        name, texts, values, odd = table(number)
        found = {source: outcome(frame) for source, frame in sources(texts, tmp_path).items()}
        first = found["pandas"]
        for source, one in found.items():
            if isinstance(first, str):
                assert one == first, (name, odd, source)
            else:
                np.testing.assert_array_equal(one, first, err_msg=f"{name}, {odd}, {source}")
        if isinstance(first, str):
            asks = "in silence" not in first and "a category" not in first
            as_a_person += odd == "mistake" and asks
            if not asks:
                silent.append((name, odd, first))
        elif np.allclose(first, values, rtol=1e-4 if "scientific" in name else 1e-12, equal_nan=True):
            as_a_person += odd != "mistake"
        else:
            silent.append((name, odd, first - values))
    assert not silent
    assert as_a_person >= 57, as_a_person
