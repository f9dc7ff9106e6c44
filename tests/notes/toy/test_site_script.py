"""The site's own script in Chromium: what its buttons copy, and the height of frames that come from the same server."""

import functools
import http.server
import threading
from pathlib import Path

import pytest

from .browser import CHROMIUM, DRIVER, Browser

pytestmark = [
    pytest.mark.page,
    pytest.mark.skipif(DRIVER is None or CHROMIUM is None, reason="chromium or chromedriver is not installed"),
]
STATIC = Path(__file__).parents[3] / "docs/_static"
PAGE = """<!doctype html><title>page</title>
<div class="highlight-sh"><div class="highlight"><pre>$ mercer train\npip list\n</pre></div></div>
<div class="highlight-pycon"><div class="highlight">
<pre>&gt;&gt;&gt; for i in (1, 2):\n...     print(i)\n1\n2\n</pre></div></div>
<div class="highlight-text"><div class="highlight"><pre>printed</pre></div></div>
<iframe class="toy" src="inside.html"></iframe>
<script src="site.js"></script>"""
COPIED = """
window.copied = [];
Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied.push(text); } } });
for (const button of document.querySelectorAll("button.copy")) button.click();
"""


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    (root / "page.html").write_text(PAGE, encoding="utf-8")
    (root / "inside.html").write_text('<!doctype html><body style="margin: 0"><div style="height: 777px"></div>')
    (root / "site.js").write_text((STATIC / "site.js").read_text(encoding="utf-8"), encoding="utf-8")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Browser() as window:
        window.visit(f"http://127.0.0.1:{server.server_address[1]}/page.html")
        yield window
    server.shutdown()


def test_buttons_copy_what_a_reader_types(browser):
    browser.run(COPIED)
    assert browser.run("return window.copied") == ["mercer train\npip list\n", "for i in (1, 2):\n    print(i)\n"]


def test_a_frame_is_as_high_as_its_page(browser):
    browser.wait("return document.querySelector('iframe').getBoundingClientRect().height >= 777")
    assert browser.run("return document.querySelector('iframe').getBoundingClientRect().height") < 800
    browser.run("document.querySelector('iframe').contentDocument.querySelector('div').style.height = '999px'")
    browser.wait("return document.querySelector('iframe').getBoundingClientRect().height >= 999")
