"""``mercer toy``: what it writes, opens and serves."""

from __future__ import annotations

import html
import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import webbrowser
from pathlib import Path

import pytest

from cli.commands import run
from mercer.cli.toy import _server
from mercer.notes import toy


def start_of(path: Path) -> str:
    """What a page was made to begin with."""
    found = re.search(r'data-start="([^"]*)"', path.read_text(encoding="utf-8"))
    assert found is not None
    return html.unescape(found[1])


def test_it_opens_a_local_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or True)
    run("toy")
    [url] = opened
    path = Path(urllib.request.url2pathname(url.removeprefix("file://")))
    assert path.read_text(encoding="utf-8") == toy.page()
    assert str(path) in capsys.readouterr().out


def test_points_of_a_file(folder: Path) -> None:
    Path("four").write_text("+1 1:0.5 2:1\n-1 1:-2\n+1 2:0.25\n")
    run("toy", "four", "--output", "toy.html")
    assert start_of(Path("toy.html")) == "#task=classify&points=0.5,1,0;-2,0,1;0,0.25,0"
    Path("table.csv").write_text("a,b,c,kind\n1,2,3,x\n4,5,6,y\n")
    run("toy", "table.csv", "--target", "kind", "--features", "a", "c", "--output", "toy.html")
    assert start_of(Path("toy.html")) == "#task=classify&x=a&y=c&points=1,3,0;4,6,1"
    Path("line.csv").write_text("x,y\n1,2\n2,4.5\n")
    run("toy", "line.csv", "--target", "y", "--task", "regress", "--output", "toy.html")
    assert start_of(Path("toy.html")) == "#task=regress&x=x&y=y&points=1,2,0;2,4.5,0"


def test_columns_with_any_name_become_the_axes(folder: Path) -> None:
    Path("table.csv").write_text("petal length (cm),a&b+c%,kind\n1,2,x\n4,5,y\n")
    run("toy", "table.csv", "--target", "kind", "--output", "toy.html")
    given = urllib.parse.parse_qs(start_of(Path("toy.html")).removeprefix("#"))
    assert (given["x"], given["y"]) == (["petal length (cm)"], ["a&b+c%"])


def test_it_links_to_the_page_that_it_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("toy", "--output", "toy.html")
    assert "<a " not in Path("toy.html").read_text(encoding="utf-8")
    run("toy", "--home", "https://example.org/?a=1&b", "--output", "toy.html")
    assert 'href="https://example.org/?a=1&amp;b"' in Path("toy.html").read_text(encoding="utf-8")
    run("toy", "--home", "javascript:alert(1)", "--output", "bad.html", code=1)
    assert "neither an http address nor a relative one" in capsys.readouterr().err
    assert not Path("bad.html").exists()


@pytest.mark.parametrize("features", [("2", "9"), ("0", "3")])
def test_a_column_that_is_not_there_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], features: tuple[str, str]
) -> None:
    Path("table.csv").write_text("a,b,c,kind\n1,2,3,x\n4,5,6,y\n")
    Path("text").write_text("1 1:1 2:2 3:3\n0 1:1\n")
    for words, known in ((["table.csv", "--target", "kind"], ", 'a', 'b', 'c'"), (["text"], "")):
        run("toy", *words, "--features", *features, "--output", "toy.html", code=1)
        assert f"{words[0]} has no column {features[1]}: it has 3, counted from 0{known}" in capsys.readouterr().err
        assert not Path("toy.html").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("".join(f"{i % 2} 1:{i / 999}\n" for i in range(501)), "at most 500"),
        ("1 1:1 2:2 3:3\n0 1:1\n", "choose them with --features"),
        ("".join(f"{i} 1:{i}\n" for i in range(5)), "5 classes"),
        ("1 1:1e5\n0 1:2\n", "mercer scale"),
    ],
    ids=["rows", "features", "classes", "size"],
)
def test_what_the_page_cannot_hold_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    Path("data").write_text(text)
    run("toy", "data", "--output", "toy.html", code=1)
    assert told in capsys.readouterr().err
    assert not Path("toy.html").exists()


def port(found: re.Match[str]) -> int:
    return int(found[1].split(":")[2].rstrip("/"))


def asked(port: int, method: str, host: str) -> tuple[int, bytes]:
    """The status and the body of the answer to a request with this Host."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, "/", headers={"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_silent_connections_keep_nobody_waiting() -> None:
    """As browsers open them ahead: twenty of them, and the page comes at once."""
    with _server("page", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        silent = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(20)]
        begun = time.monotonic()
        assert asked(server.server_port, "GET", f"localhost:{server.server_port}") == (200, b"page")
        assert time.monotonic() - begun < 5
        for one in silent:
            one.close()
        server.shutdown()
    assert server.RequestHandlerClass.timeout == 10


def test_pages_of_other_days_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    run("toy")
    [first] = tmp_path.glob("mercer-toy-*")
    run("toy")
    assert first.exists()
    other = tmp_path / "mercer-toy-notes"  # holds something that is no page of ours
    other.mkdir()
    (other / "mine.txt").write_text("keep")
    for folder in (first, other):
        os.utime(folder, (0, 0))
    run("toy")
    assert not first.exists()
    assert (other / "mine.txt").exists()
    assert len(list(tmp_path.glob("mercer-toy-*"))) == 3


def test_it_serves_one_page_on_the_loopback_address() -> None:
    code = "import sys; from mercer.cli.main import main; sys.exit(main(['toy', '--serve']))"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.match(r"(http://127\.0\.0\.1:\d+/)", server.stdout.readline())
            assert found is not None
            with urllib.request.urlopen(found[1], timeout=20) as answer:
                assert answer.read().decode() == toy.page()
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(found[1] + "etc/passwd", timeout=20)
            for host, status in (
                ("evil.example", 403),
                ("127.0.0.1", 403),
                ("", 403),
                (f"localhost:{port(found)}", 200),
            ):
                assert asked(port(found), "GET", host)[0] == status
            assert asked(port(found), "HEAD", f"127.0.0.1:{port(found)}") == (200, b"")
        finally:
            server.kill()
