"""``mercer toy``: the page with an SVM under your hand, as a local file or served on the loopback address."""

from __future__ import annotations

import argparse
import os
import stat
import tempfile
import time
import webbrowser
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.data import Data, read_data
from mercer.cli.formats import add_data
from mercer.cli.plot import column_called
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing
from mercer.notes.toy import link, page

_FOLDER = "mercer-toy-"
# As src/mercer/notes/toy/web/formats.js has them.
_MOST_POINTS, _MOST_CLASSES, _FARTHEST = 500, 4, 1000.0


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "toy",
        run,
        ("mercer toy", "the page"),
        ("mercer toy fourclass", "with the points of a file"),
        ("mercer toy iris.csv --target species --features 2 3", "two features of a table"),
        ("mercer toy --serve", "for a browser that cannot open local files"),
        ("mercer toy --output toy.html", "write it, to send or to publish"),
        description="Open a page in the browser on which points are added and dragged, and an exact SVM follows with "
        "its certificate: classification, regression and novelty. It works without a network.",
    )
    add_data(parser, "the column of a table that holds labels or targets", nargs="?")
    parser.add_argument("--features", nargs=2, default=None, metavar=("A", "B"), help="names or numbers from 0 (0 1)")
    parser.add_argument("--task", choices=("classify", "regress", "novelty"), default="classify", help="(classify)")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the page there, and open nothing")
    parser.add_argument(
        "--serve", action="store_true", help="serve it on 127.0.0.1 until Ctrl-C, and print the address"
    )
    parser.add_argument("--port", type=int, default=0, help="of --serve (a free one)")


def run(args: argparse.Namespace) -> None:
    text = page("" if args.file is None else _points(args))
    if args.output is not None:
        with replacing(args.output) as file:
            file.write(text.encode())
        print(printable(f"saved {args.output}"))
        return
    if args.serve:
        with _server(text, args.port) as server:
            print(f"http://127.0.0.1:{server.server_port}/ until Ctrl-C", flush=True)
            server.serve_forever()
    _remove_old_pages()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))  # nobody else can have put something there
    path = folder / "toy.html"
    path.write_text(text, encoding="utf-8")
    opened = webbrowser.open(path.as_uri())
    print(f"{'opened' if opened else 'no browser was found; open'} {path}")


def _remove_old_pages() -> None:
    """Remove the pages that this user opened more than a day ago; a browser has read them long since."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with suppress(OSError):  # somebody else's, or no longer there
            found = folder.lstat()
            own = stat.S_ISDIR(found.st_mode) and (os.name != "posix" or found.st_uid == os.getuid())
            if own and found.st_mtime < time.time() - 86_400:
                (folder / "toy.html").unlink(missing_ok=True)
                folder.rmdir()


def _points(args: argparse.Namespace) -> str:
    """The file's rows as the end of an address."""
    regress = args.task == "regress"
    data = read_data(args.file, args.format, args.target, training=args.task != "novelty", regression=regress)
    if data.X.shape[0] > _MOST_POINTS:
        raise ValueError(
            f"{data.source} has {data.X.shape[0]:,} rows, but the page takes up to {_MOST_POINTS}: take some of them, "
            "or train on all with mercer train"
        )
    wanted = [0] if regress else [0, 1]
    if args.features is not None:
        wanted = [_chosen(text, data) for text in args.features[: len(wanted)]]
    elif data.X.shape[1] > 2:
        raise ValueError(
            f"{data.source} has {data.X.shape[1]} features, but the page has two: choose them with --features"
        )
    X = _columns(data, wanted)
    if not np.isfinite(X).all() or float(np.abs(X).max(initial=0.0)) > _FARTHEST:
        raise ValueError(f"the page takes finite numbers up to ±{_FARTHEST:g}: scale {data.source} with mercer scale")
    if regress:
        return link("regress", [(x, float(y), 0) for x, y in zip(X[:, 0], data.y, strict=True)])
    classes = np.zeros(len(X), dtype=int) if args.task == "novelty" else _classes(data)
    return link(args.task, [(a, b, int(c)) for (a, b), c in zip(X, classes, strict=True)])


def _chosen(text: str, data: Data) -> int:
    """The place of a column that --features names, which the file must have."""
    place, there = column_called(text, data.names), int(data.X.shape[1])
    if place >= there:
        known = "" if data.names is None else f", {', '.join(map(repr, data.names))}"
        raise ValueError(f"{data.source} has no column {text}: it has {there}, counted from 0{known}")
    return place


def _columns(data: Data, wanted: list[int]) -> Any:
    """The wanted columns as an array; x₂ of a file with a single feature is zero."""
    X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    out = np.zeros((X.shape[0], len(wanted)))
    for k, place in enumerate(wanted):
        if place < X.shape[1]:
            out[:, k] = X[:, place]
    return out


def _classes(data: Data) -> Any:
    """0, 1, … for the labels; +1 before −1, as the page draws them, and names in their order."""
    labels, classes = np.unique(np.asarray(data.y), return_inverse=True)
    if len(labels) > _MOST_CLASSES:
        raise ValueError(f"{data.source} has {len(labels)} classes, but the page has {_MOST_CLASSES}")
    return len(labels) - 1 - classes if labels.dtype.kind in "iuf" else classes


def _server(text: str, port: int) -> ThreadingHTTPServer:
    """A server on the loopback address that knows one page."""
    content = text.encode()

    class OnePage(BaseHTTPRequestHandler):
        timeout = 10  # seconds: a connection that says nothing is closed

        def do_GET(self) -> None:
            if self._answer():
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            self._answer()

        def _answer(self) -> bool:
            """Send the headers of the page, or an error."""
            # Any name of the web can be made to mean 127.0.0.1; a page of that name must not read this one.
            here = self.connection.getsockname()[1]
            if self.headers.get("Host", "") not in (f"127.0.0.1:{here}", f"localhost:{here}"):
                self.send_error(403, "this page is for 127.0.0.1 and localhost")
                return False
            if self.path.partition("?")[0] != "/":
                self.send_error(404)
                return False
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            return True

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the address is all that is printed."""

    return ThreadingHTTPServer(("127.0.0.1", port), OnePage)
