"""Column names: read from a frame, aligned between several sources, and compared with those that a model was fitted on.

The rule is scikit-learn's: names are strings; a model that was fitted with names refuses other names or another order.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Names = tuple[str, ...]
_MAX_NAMES = 5  # names listed in an error message


def column_names(X: Any) -> Names | None:
    """Return the column names of a frame; None for other data, and if no name is a string."""
    if hasattr(X, "column_names"):  # an Arrow table
        columns: Any = X.column_names
    elif hasattr(X, "columns") and hasattr(X, "dtypes"):
        columns = X.columns
    else:
        return None
    columns = list(columns)
    strings = [isinstance(name, str) for name in columns]
    if any(strings) and not all(strings):
        other = columns[strings.index(False)]
        raise TypeError(
            f"some columns of X have strings for names, but one is called {other!r}, a {type(other).__name__}; "
            "rename them: X.columns = X.columns.astype(str)"
        )
    return tuple(map(str, columns)) if all(strings) and columns else None


def similar_column(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like `name`, if any is: 'prix' for 'Prix', 'gekündigt' for 'gekuendigt'."""
    from difflib import get_close_matches  # imported here, since only errors need it

    name_of_plain = {_plain(known): known for known in reversed(list(names))}
    word = _plain(name)
    close_words = get_close_matches(word, name_of_plain, n=1)
    if not close_words and len(word) > 2:  # 'date' for 'date of sale', 'surface_m2' for 'surface'
        close_words = [
            known for known in name_of_plain if known.startswith(word) or (len(known) > 2 and word.startswith(known))
        ]
    return name_of_plain[close_words[0]] if close_words else None


def column_suggestion(name: str, names: Iterable[str]) -> str:
    """Return " (did you mean 'prix'?)" for the most similar name, or an empty text."""
    similar_name = similar_column(name, names)
    return "" if similar_name is None else f" (did you mean {similar_name!r}?)"


def renamed_column(absent: Sequence[str], names: Iterable[str]) -> str:
    """Return a hint that one of the columns `names` may be the first of the absent ones under another name."""
    similar_name = similar_column(absent[0], names)
    return "" if similar_name is None else f"; if {similar_name!r} is {absent[0]!r} by another name, rename it"


def _plain(name: str) -> str:
    """Return the letters and digits of a name in lower case, without accents."""
    return "".join(mark for mark in unicodedata.normalize("NFKD", name).casefold() if mark.isalnum())


def column_positions(names: Names, requested: Names, source: str, first: str) -> list[int]:
    """Return the positions of the columns of the source `first`, the `requested` ones, among the names of another."""
    if len(set(names)) < len(names):
        duplicate = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"{source} has two columns called {duplicate!r}; rename one of them")
    missing, other = (
        [name for name in requested if name not in names],
        [name for name in names if name not in requested],
    )
    if missing or other:
        faults = [f"lacks {_quote_names(missing)}"] * bool(missing) + [f"also has {_quote_names(other)}"] * bool(other)
        raise ValueError(
            f"the columns of {source} are not those of {first}: it {' and '.join(faults)}. All parts of a data set "
            "need the same columns, in any order"
        )
    position = {name: k for k, name in enumerate(names)}
    return [position[name] for name in requested]


def _quote_names(names: Sequence[str]) -> str:
    """Return the first names in quotes, separated by commas, and the number of the others."""
    more_text = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(map(repr, names[:_MAX_NAMES])) + more_text


def check_names(estimator: Any, names: Names | None, *, reset: bool) -> None:
    """Store the names of training samples (`reset`), or raise scikit-learn's error if those of new samples differ."""
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    fitted_names: Any = getattr(estimator, "feature_names_in_", None)
    if names is not None and fitted_names is not None and tuple(fitted_names) != names:
        unseen, missing = sorted(set(names) - set(fitted_names)), sorted(set(fitted_names) - set(names))
        parts = [
            *(["Feature names unseen at fit time:", *_bullet_list(unseen)] if unseen else []),
            *(["Feature names seen at fit time, yet now missing:", *_bullet_list(missing)] if missing else []),
            *(["Feature names must be in the same order as they were in fit."] if not unseen + missing else []),
        ]
        raise ValueError("\n".join(["The feature names should match those that were passed during fit.", *parts, ""]))


def names_remark(estimator: Any, names: Names | None) -> str | None:
    """Return scikit-learn's warning if only the new samples or only the training samples have names, else None."""
    was_fitted_with_names, title = hasattr(estimator, "feature_names_in_"), type(estimator).__name__
    if was_fitted_with_names and names is None:
        return f"X does not have valid feature names, but {title} was fitted with feature names"
    return (
        None
        if was_fitted_with_names or names is None
        else f"X has feature names, but {title} was fitted without feature names"
    )


def _bullet_list(names: Sequence[str]) -> list[str]:
    """Return the first names as lines of scikit-learn's message."""
    return [f"- {name}" for name in names[:_MAX_NAMES]] + ["- ..."] * (len(names) > _MAX_NAMES)


def adopt_names(estimator: Any, source: Any) -> None:
    """Store the column names of stored rows in an estimator that was fitted on their unnamed chunks."""
    names = getattr(source, "names", None)
    if names is not None:
        check_names(estimator, names, reset=True)
