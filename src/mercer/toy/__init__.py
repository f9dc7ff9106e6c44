"""The page: an SVM under your hand, in the browser, solved by the library's own core and certified while you drag."""

from __future__ import annotations

from pathlib import Path

WEB = Path(__file__).parent / "web"
