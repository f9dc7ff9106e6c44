"""An estimator in a notebook: scikit-learn's picture of it, and below that what the fit has proven."""

from __future__ import annotations

import html
from typing import Any

_STYLE = (
    "font-family:monospace;font-size:0.85em;line-height:1.4;white-space:pre;margin:0.3em 0 0 0.3em;padding:0.4em 0.8em;"
    "border-left:3px solid {colour};display:inline-block"
)
_PROVEN, _OPEN = "#4f9d69", "#d1603d"


class ShowsCertificate:
    """An estimator of scikit-learn whose picture in a notebook ends with its certificate, once it has one."""

    def _repr_html_inner(self) -> str:
        inherited: Any = super()
        return _with_certificate(inherited._repr_html_inner(), self)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        inherited: Any = super()
        bundle = inherited._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = _with_certificate(bundle["text/html"], self)
        return bundle


def _with_certificate(picture: str, estimator: Any) -> str:
    """The certificate stands in the body of the picture, below all else."""
    machine = estimator if hasattr(estimator, "certificate_") else getattr(estimator, "estimator_", None)
    certificate = getattr(machine, "certificate_", None)
    if certificate is None:
        return picture
    ended = str(getattr(machine, "stop_reason_", ""))
    colour = _PROVEN if ended == "converged" else _OPEN
    text = html.escape(f"certificate: {ended}\n{certificate}")
    block = f'<div class="mercer-certificate" style="{_STYLE.format(colour=colour)}">{text}</div>'
    body, end, rest = picture.rpartition("</body>")
    return f"{body}{block}{end}{rest}" if end else picture + block
