"""Units of numbers: words that are units, quantities written with their unit, and units in a model file."""

from __future__ import annotations

import math
import re
from typing import Final

TIME: Final = ":"  # the unit of times and durations, which are read in seconds

_SYMBOLS: Final = frozenset({*'$£¥￥฿¢%‰°"', *map(chr, range(0x20A0, 0x20C1))})
_CURRENCY_WORDS: Final = (
    "AUD BGN BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NOK NZD PHP PLN RON RUB SEK SGD "
    "THB TRY UAH USD VND ZAR Fr Ft Kr Kč Lei Rp Rs TL kr lei zł грн лв руб "
    "Dollar Dollars Euro Euros Franken Pfund dollar dollars euro euros francs pesos pounds reais"
)
_CURRENCIES: Final = frozenset(_CURRENCY_WORDS.split())
_PREFIXED: Final = frozenset(
    f"{prefix}{base}"
    for prefix in ("", "p", "n", "µ", "μ", "m", "c", "d", "h", "k", "M", "G", "T")
    for base in (
        "m",
        "g",
        "l",
        "L",
        "W",
        "Wh",
        "Wp",
        "V",
        "A",
        "Ah",
        "VA",
        "Hz",
        "Pa",
        "J",
        "N",
        "Byte",
        "bit",
        "bar",
        "mol",
        "eV",
        "Ω",
    )
)
_OTHER_UNIT_WORDS: Final = (
    "a ac acre acres ans atm años anni anos BTU bp bpm cal Cal ccm Cent cent cents cl ct Ct "
    "db dB dpi F fl fps ft gal h ha hp in inch inches "
    "IU Jahr Jahre jaar jaren kcal kip km KM kn knots kph kt kts lb lbs lm lx mi mile miles mmHg mo month months "
    "Monat Monate mois meses mesi maanden mph ms ns oz p PS pcs pct percent ppb ppm ppt Prozent psi pt px qm qt rpm s "
    "sqft sqm St Stk Stück t tbsp ton tons torr tsp w week weeks Woche Wochen wk yd year years yr yrs µs μs kmh "
    "kWp gr kg Kg KG Km cm"
)
_OTHER_UNITS: Final = frozenset(_OTHER_UNIT_WORDS.split())
_SECONDS: Final = (
    "s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos secondo secondi sekund saniye "
    "сек с 秒 초"
)
_MINUTES: Final = (
    "min mins minute minutes minuten minuto minutos minuti minut minuty minuter dk dakika мин хв 分 分钟 分鐘 분"
)
_HOURS: Final = (
    "h hr hrs hour hours std stunde stunden heure heures hora horas ora ore uur uren godz tim timmar timme sa saat ч "
    "час часа часов год 時間 小时 小時 시간"
)
_DAYS: Final = (
    "d day days tag tage jour jours día días dia dias giorno giorni dag dagen dni dzień gün день дня дней 日 天 일"
)
_WEEKS: Final = "w wk wks week weeks woche wochen semaine semaines semana semanas settimana settimane weken 週 周"
# Words for units of time, in lower case, with their length in seconds.
DURATION_UNITS: Final = {
    word: seconds
    for words, seconds in (
        (_SECONDS, 1.0),
        (_MINUTES, 60.0),
        (_HOURS, 3600.0),
        (_DAYS, 86400.0),
        (_WEEKS, 604800.0),
    )
    for word in words.split()
}
_THOUSANDS: Final = "k K Tsd tsd thousand mil tys тыс"
_MILLIONS: Final = "m M mn Mn mln mio Mio Mill million millions Millionen millones milioni млн"
_BILLIONS: Final = "b B bn Bn mrd Mrd mld Mld md Md billion billions Milliarden milliards miliardi млрд"
# Words and letters for powers of 10, beside a currency; alone, m may be metres, and b or md may be anything.
POWERS_OF_10: Final = {
    word: power for words, power in ((_THOUSANDS, 3), (_MILLIONS, 6), (_BILLIONS, 9)) for word in words.split()
}
CLEAR_POWERS_OF_10: Final = POWERS_OF_10.keys() - {"m", "b", "md"}

Units = dict[str, str]


def is_symbol(unit: str) -> bool:
    """Return whether a unit is a sign such as € or %, perhaps with letters before it, as in US$."""
    return unit[-1:] in _SYMBOLS


def is_currency(unit: str) -> bool:
    """Return whether a unit may stand before a number."""
    return is_symbol(unit) or unit in _CURRENCIES


def is_known_unit(unit: str) -> bool:
    """Return whether a word is a unit: of money, physics or time; products and quotients such as mg/dL too."""
    parts = [part.rstrip("⁻¹²³⁴") for part in re.split("[/·]", re.sub("[()]|100 ", "", unit))]
    return all(is_currency(part) or _is_known_word(part.removeprefix("°")) for part in parts)


def _is_known_word(word: str) -> bool:
    return word in _PREFIXED or word in _OTHER_UNITS or word in "CF" or word.lower() in DURATION_UNITS


def is_same_unit(one: str, other: str) -> bool:
    """Return whether two units are equal, or singular and plural of one word: year and years, Tag and Tage."""
    short, long = sorted((one, other), key=len)
    suffix = long.removeprefix(short)
    return short == long or (
        long.startswith(short)
        and ((len(short) > 2 and len(suffix) <= 2 and suffix.islower()) or (len(short), suffix) == (2, "s"))
    )


def expect_unit(name: str, trained: str, unit: str) -> None:
    """Raise ValueError if a column has another unit than in training. It may have none, or one if it had none then."""
    if not unit or is_same_unit(unit, trained) or (not trained and unit not in ("%", "‰")):
        return
    history = f"was trained on {trained if trained != TIME else 'times'}" if trained else "was trained on numbers alone"
    raise ValueError(
        f"the column {name!r} is in {unit if unit != TIME else 'times'}, but the model {history}; convert the column"
    )


def format_quantity(value: float, unit: str = "") -> str:
    """Write a number with four digits and its unit as people do, 71,310 € or 0.04213, and not 7.131e+04."""
    if not math.isfinite(value):
        return str(value)
    if unit == TIME:
        return format_clock(value)
    size = abs(value)
    if 1e15 > size >= 1e3:
        digits = 3 - math.floor(math.log10(size))
        text = f"{round(value, digits):,.0f}"
    else:
        text = f"{value:.4g}"
    return f"{text} {unit}".rstrip() if unit not in ("$", "£", "¥", "₹") else f"{unit}{text}"


def format_clock(seconds: float) -> str:
    """Write seconds as a clock shows them: 5:32, or 1:05:32 from an hour on."""
    minutes, rest = divmod(round(abs(seconds)), 60)
    clock_text = f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
    return f"-{clock_text}" if round(seconds) < 0 else clock_text


def describe_units(units: Units) -> str:
    """Describe the units of columns in a report."""
    return ", ".join(f"{title} {'as time' if unit == TIME else f'in {unit}'}" for title, unit in units.items())


def units_to_text(units: Units) -> str | None:
    """Write units as one text for a model file, with a line for each column."""
    unit_lines = [f"{unit} {title}" for title, unit in units.items() if len(title.splitlines()) < 2]
    return "\n".join(unit_lines) or None


def units_from_text(text: str | None) -> Units:
    """Read units from the text that `units_to_text` writes."""
    lines = [line.partition(" ") for line in (text or "").splitlines()]
    return {title: unit for unit, _, title in lines}
