"""HTML representation of an estimator in a notebook: scikit-learn's diagram, followed by the certificate of the fit."""

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

# scikit-learn shows a row for each parameter of each part of a kernel; above this number, only those of the machine.
_MOST_PARAMETERS = 100

# Machine whose certificate follows the diagram that is being rendered, so that it is not shown inside it as well.
_SHOWN: ContextVar[Any] = ContextVar("_SHOWN", default=None)


class ShowsCertificate:
    """Mixin that adds the certificate of a fitted machine to its diagram in a notebook.

    Within the diagram of a Pipeline or a search, the certificate follows the fitted attributes of the machine.
    """

    def _repr_html_inner(self) -> str:
        """Return the HTML of scikit-learn's diagram, followed by the certificate of the machine."""
        token = _SHOWN.set(_machine_of(self))
        try:
            body, end, rest = str(BaseEstimator._repr_html_inner(self)).rpartition("</body>")
        finally:
            _SHOWN.reset(token)
        return escape_controls(f"{body}{_certificate(self)}{end}{rest}" if end else rest + _certificate(self))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the representations for a notebook, with the certificate in the HTML."""
        bundle = BaseEstimator._repr_mimebundle_(self, **kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _get_params_html(self, deep: bool = True, doc_link: str = "") -> Any:
        """Return the table of parameters, without those of nested objects if there are too many."""
        params = BaseEstimator._get_params_html(self, deep, doc_link)
        if len(params) <= _MOST_PARAMETERS:
            return params
        return BaseEstimator._get_params_html(self, False, doc_link)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Return the table of fitted attributes, followed by the certificate inside another diagram."""
        attributes = BaseEstimator._get_fitted_attr_html(self, doc_link)
        attributes_html = attributes._repr_html_inner
        if _SHOWN.get() is not _machine_of(self):
            attributes._repr_html_inner = lambda: attributes_html() + _certificate(self)
        return attributes


def _machine_of(model: Any) -> Any:
    """Return the machine inside a table model, a search, a calibrated model or a Pipeline."""
    while not hasattr(model, "certificate_"):
        inner = getattr(model, "estimator_", None)
        if inner is None and hasattr(model, "steps"):
            inner = model.steps[-1][1]
        if inner is None:
            return model
        model = inner
    return model


def _certificate(estimator: Any) -> str:
    """Return the certificate as an HTML block; an empty string for a machine without one."""
    machine = _machine_of(estimator)
    certificate = getattr(machine, "certificate_", None)
    if certificate is not None:
        stop_reason = str(getattr(machine, "stop_reason_", ""))
        colour = _PROVEN if stop_reason == "converged" else _OPEN
        text = f"certificate: {stop_reason}\n{certificate}"
    elif hasattr(machine, "compression_"):
        colour, text = _NEITHER, f"{machine.compression_!r}"
    else:
        return ""
    return f'<div class="mercer-certificate" style="{_STYLE.format(colour=colour)}">{html.escape(text)}</div>'
