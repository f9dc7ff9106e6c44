"""Open every page of the built site in Chromium at two widths, and tell what is wrong with it.

    python tests/notes/toy/look_at_site.py HTML [--shots FOLDER] [--dark] [--only NAME ...]

Told are pages that open scrolled down or scroll sideways, frames that scroll in themselves, boxes that reach beyond the
window, pictures that did not load, messages of the console, and links to places that do not
exist. With --shots it leaves a picture of every page, to be looked at.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from browser import Browser

WIDTHS = (390, 1280)
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


def faults(browser: Browser, path: Path, width: int) -> list[str]:
    found = []
    wide = browser.run("return document.documentElement.scrollWidth")
    if wide > width:
        found.append(f"scrolls sideways: {wide} > {width}")
    if down := browser.run("return scrollY"):
        found.append(f"opens scrolled down by {down}")
    found += [f"a frame of {own} px holds a page of {inner} px" for inner, own in browser.run(FRAMES)]
    found += [f"reaches beyond the window: {told}" for told in browser.run(WIDER)]
    found += [f"picture did not load: {source}" for source in browser.run(PICTURES)]
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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("html", type=Path)
    parser.add_argument("--shots", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    root = given.html.resolve()
    pages = [p for p in sorted(root.rglob("*.html")) if "_static" not in p.parts]
    pages = [p for p in pages if not given.only or any(name in str(p.relative_to(root)) for name in given.only)]
    told: dict[str, list[str]] = {}
    with Browser() as browser:
        browser.theme("dark" if given.dark else "light")
        for path in pages:
            name = str(path.relative_to(root).with_suffix("")).replace("/", "-")
            told[name] = broken_links(root, path)
            for width in WIDTHS:
                browser.size(width, 900)
                browser.visit(path.as_uri())
                told[name] += [f"{width}: {fault}" for fault in faults(browser, path, width)]
                if given.shots:
                    given.shots.mkdir(parents=True, exist_ok=True)
                    height = browser.run("return document.documentElement.scrollHeight")
                    browser.size(width, min(height, MOST_HEIGHT))
                    browser.screenshot(given.shots / f"{name}-{width}.png")
    bad = {name: faults for name, faults in told.items() if faults}
    for name, found in bad.items():
        print(name, *(f"    {fault}" for fault in found), sep="\n")
    print(f"{len(pages)} pages at {len(WIDTHS)} widths: {len(bad)} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
