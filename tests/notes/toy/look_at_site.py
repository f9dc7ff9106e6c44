"""Open every page of the built site in Chromium at two widths, light and dark, and print what is wrong with it.

    python tests/notes/toy/look_at_site.py HTML [--http] [--shots FOLDER] [--guides] [--only NAME ...]

Printed are pages that open scrolled down or scroll sideways, frames that scroll in themselves, boxes that reach beyond
the window, pictures that did not load, requests to other hosts, messages of the console, and links that lead nowhere.
With --http the pages come from a server on this computer instead of from files. With --shots every page leaves a
picture of each width and theme, to be looked at. --guides leaves out the gallery and the pages of single names.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import re
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from browser import Browser

WIDTHS = (390, 1280)
THEMES = ("light", "dark")
SETTLING = 0.15  # seconds in which a frame may still scroll the page around it
MOST_HEIGHT = 12_000  # of a screenshot, in pixels

# What reaches beyond the window, unless something around it scrolls or hides it.
WIDER = """
const scrolls = (e) => {
  for (let a = e; a && a !== document.body; a = a.parentElement) {
    if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(a).overflowX)) return true;
    if (getComputedStyle(a).position === "fixed") return true;
  }
  return false;
};
return [...document.querySelectorAll(".content *")]
  .filter((e) => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e))
  .slice(0, 3).map((e) => `${e.tagName.toLowerCase()}.${e.className} ${(e.textContent || "").trim().slice(0, 40)}`);
"""
# A frame's page is of another origin where the site is opened from files; then it is not looked into.
FRAMES = """
return [...document.querySelectorAll("iframe.toy")].filter((f) => f.getClientRects().length && f.contentDocument)
  .map((f) => [f.contentDocument.documentElement.scrollHeight, f.clientHeight])
  .filter(([inner, own]) => inner > own + 1);
"""
PICTURES = "return [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"


def foreign_requests(browser: Browser, origin: str) -> list[str]:
    """Return the addresses of other hosts that the page asked since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return sorted({url for url in asked if not url.startswith((origin, "data:", "blob:", "about:"))})


def faults(browser: Browser, origin: str, width: int) -> list[str]:
    time.sleep(SETTLING)
    found = []
    wide = browser.run("return document.documentElement.scrollWidth")
    if wide > width:
        found.append(f"scrolls sideways: {wide} > {width}")
    if down := browser.run("return scrollY"):
        found.append(f"opens scrolled down by {down}")
    found += [f"a frame of {own} px holds a page of {inner} px" for inner, own in browser.run(FRAMES)]
    found += [f"reaches beyond the window: {text}" for text in browser.run(WIDER)]
    found += [f"picture did not load: {source}" for source in browser.run(PICTURES)]
    found += [f"asks another host: {url}" for url in foreign_requests(browser, origin)]
    found += [f"console: {entry['message'][:150]}" for entry in browser.log("browser")]
    return found


def broken_links(root: Path, path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    found = []
    for address in set(re.findall(r'(?:href|src)="([^"#?]+)[^"]*"', text)):
        if re.match(r"\w+:|//", address):
            continue
        if not (path.parent / address).resolve().exists():
            found.append(f"leads nowhere: {address}")
    return found


class Silent(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a line for every request."""

    def log_message(self, *_: object) -> None:
        pass


def serve(root: Path) -> str:
    """Serve the folder on a free port of this computer, as long as this process lives; return the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def look_at(browser: Browser, origin: str, root: Path, page: Path, shots: Path | None) -> list[str]:
    """Return what is wrong with one page, at all widths and in both themes."""
    relative = page.relative_to(root)
    found = broken_links(root, page)
    for theme in THEMES:
        browser.theme(theme)
        for width in WIDTHS:
            browser.size(width, 900)
            browser.visit(f"{origin}/{relative.as_posix()}")
            found += [f"{width}, {theme}: {fault}" for fault in faults(browser, origin, width)]
            if shots:
                shots.mkdir(parents=True, exist_ok=True)
                height = browser.run("return document.documentElement.scrollHeight")
                browser.size(width, min(height, MOST_HEIGHT))
                name = "-".join(relative.with_suffix("").parts)
                browser.screenshot(shots / f"{name}-{width}-{theme}.png")
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("html", type=Path)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--shots", type=Path)
    parser.add_argument("--guides", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    root = given.html.resolve()
    pages = [p for p in sorted(root.rglob("*.html")) if "_static" not in p.parts]
    pages = [p for p in pages if not given.only or any(name in str(p.relative_to(root)) for name in given.only)]
    if given.guides:
        pages = [p for p in pages if p.parent == root]
    origin = serve(root) if given.http else root.as_uri()
    bad = 0
    with Browser() as browser:
        for page in pages:
            if found := look_at(browser, origin, root, page, given.shots):
                bad += 1
                print(page.relative_to(root), *(f"    {fault}" for fault in found), sep="\n", flush=True)
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, {' and '.join(THEMES)}: {bad} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
