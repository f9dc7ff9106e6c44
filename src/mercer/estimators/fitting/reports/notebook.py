"""An estimator in a notebook: scikit-learn's picture of it, and below that what the fit has proven."""

from __future__ import annotations

import html
from contextvars import ContextVar
from typing import Any

from sklearn.base import BaseEstimator

from mercer.runtime.control_characters import escape_controls

_STYLE = (
    "font-family:monospace;font-size:0.85em;line-height:1.4;white-space:pre;margin:0.3em 0 0 0.3em;padding:0.4em 0.8em;"
    "border-left:3px solid {colour};display:inline-block"
)
_PROVEN, _OPEN, _NEITHER = "#4f9d69", "#d1603d", "#7a7a7a"

# scikit-learn shows a row for each parameter of each part of a kernel: with more, only those of the machine itself.
_MOST_PARAMETERS = 100

# The machine whose certificate stands below the picture that is being made, and so not inside it again.
_SHOWN: ContextVar[Any] = ContextVar("_SHOWN", default=None)


class ShowsCertificate:
    """An estimator of scikit-learn whose picture in a notebook ends with its certificate, once it has one.

    Within the picture of a Pipeline or a search, it stands below the fitted attributes of the machine.
    """

    def _repr_html_inner(self) -> str:
        token = _SHOWN.set(_machine_of(self))
        try:
            body, end, rest = str(BaseEstimator._repr_html_inner(self)).rpartition("</body>")
        finally:
            _SHOWN.reset(token)
        return escape_controls(f"{body}{_certificate(self)}{end}{rest}" if end else rest + _certificate(self))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = BaseEstimator._repr_mimebundle_(self, **kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _get_params_html(self, deep: bool = True, doc_link: str = "") -> Any:
        params = BaseEstimator._get_params_html(self, deep, doc_link)
        if len(params) <= _MOST_PARAMETERS:
            return params
        return BaseEstimator._get_params_html(self, False, doc_link)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        attributes = BaseEstimator._get_fitted_attr_html(self, doc_link)
        plain = attributes._repr_html_inner
        if _SHOWN.get() is not _machine_of(self):
            attributes._repr_html_inner = lambda: plain() + _certificate(self)
        return attributes


def _machine_of(model: Any) -> Any:
    """The machine inside a model of a table, a search, a calibration or a Pipeline."""
    while not hasattr(model, "certificate_"):
        inner = getattr(model, "estimator_", None)
        if inner is None and hasattr(model, "steps"):
            inner = model.steps[-1][1]
        if inner is None:
            return model
        model = inner
    return model


def _certificate(estimator: Any) -> str:
    """A block of text; nothing for a machine that has no certificate."""
    machine = _machine_of(estimator)
    certificate = getattr(machine, "certificate_", None)
    if certificate is not None:
        ended = str(getattr(machine, "stop_reason_", ""))
        colour = _PROVEN if ended == "converged" else _OPEN
        text = f"certificate: {ended}\n{certificate}"
    elif hasattr(machine, "compression_"):
        colour, text = _NEITHER, f"{machine.compression_!r}"
    else:
        return ""
    return f'<div class="mercer-certificate" style="{_STYLE.format(colour=colour)}">{html.escape(text)}</div>'
