"""``mercer toy``: the interactive page with an exact SVM, as a local file or served on the loopback address."""

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
from mercer.cli.formats import add_data_arguments
from mercer.cli.plot import column_index
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing
from mercer.notes.toy import link, page

_FOLDER = "mercer-toy-"
# The same limits as in src/mercer/notes/toy/web/formats.js.
_MOST_POINTS, _MOST_CLASSES, _LARGEST_NUMBER = 500, 4, 1000.0


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "toy",
        run,
        ("mercer toy", "open the page"),
        ("mercer toy fourclass", "with the rows of a file"),
        ("mercer toy iris.csv --target species --features 2 3", "two features of a table"),
        ("mercer toy --serve", "for a browser that cannot open local files"),
        ("mercer toy --output toy.html", "write the page to a file"),
        description="Open a page in the browser. You add and drag points, and an exact SVM follows with its "
        "certificate: for classification, regression or novelty detection. The page needs no network.",
    )
    add_data_arguments(parser, "column of a table with the labels or targets", nargs="?")
    parser.add_argument(
        "--features", nargs=2, default=None, metavar=("A", "B"), help="two columns, by name or by number from 0 (0 1)"
    )
    parser.add_argument(
        "--task", choices=("classify", "regress", "novelty"), default="classify", help="what to learn (classify)"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the page to this file instead of opening it")
    parser.add_argument("--home", metavar="ADDRESS", default="", help="a page that this one links to, as Docs")
    parser.add_argument(
        "--serve", action="store_true", help="serve the page on 127.0.0.1 until Ctrl-C, and print its address"
    )
    parser.add_argument("--port", type=int, default=0, help="port for --serve (any free port)")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    text = page("" if args.file is None else _points(args), args.home)
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
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))  # a new folder, into which no other user can write
    path = folder / "toy.html"
    path.write_text(text, encoding="utf-8")
    has_opened = webbrowser.open(path.as_uri())
    print(f"{'opened' if has_opened else 'no browser was found; open this file yourself:'} {path}")


def _remove_old_pages() -> None:
    """Remove the pages that this user opened more than a day ago."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with suppress(OSError):  # another user's, or already removed
            status = folder.lstat()
            is_mine = stat.S_ISDIR(status.st_mode) and (os.name != "posix" or status.st_uid == os.getuid())
            if is_mine and status.st_mtime < time.time() - 86_400:
                (folder / "toy.html").unlink(missing_ok=True)
                folder.rmdir()


def _points(args: argparse.Namespace) -> str:
    """Return the rows of the file as the fragment of the page's address."""
    is_regression = args.task == "regress"
    data = read_data(args.file, args.format, args.target, training=args.task != "novelty", regression=is_regression)
    if data.X.shape[0] > _MOST_POINTS:
        raise ValueError(
            f"{data.source} has {data.X.shape[0]:,} rows, but the page takes at most {_MOST_POINTS}: use fewer rows, "
            "or mercer train"
        )
    columns = [0] if is_regression else [0, 1]
    if args.features is not None:
        columns = [_column(text, data) for text in args.features[: len(columns)]]
    elif data.X.shape[1] > 2:
        raise ValueError(
            f"{data.source} has {data.X.shape[1]} features, but the page shows two: choose them with --features"
        )
    X = _columns(data, columns)
    if not np.isfinite(X).all() or float(np.abs(X).max(initial=0.0)) > _LARGEST_NUMBER:
        raise ValueError(
            f"the page takes finite numbers from −{_LARGEST_NUMBER:g} to {_LARGEST_NUMBER:g}: scale {data.source} with "
            "mercer scale"
        )
    names = _axis_names(data, columns, is_regression)
    if is_regression:
        return link("regress", [(x, float(y), 0) for x, y in zip(X[:, 0], data.y, strict=True)], names)
    classes = np.zeros(len(X), dtype=int) if args.task == "novelty" else _classes(data)
    return link(args.task, [(a, b, int(c)) for (a, b), c in zip(X, classes, strict=True)], names)


def _axis_names(data: Data, columns: list[int], is_regression: bool) -> list[str] | None:
    """Return the names of the columns on the axes, None for a file that names none."""
    if data.names is None or max(columns) >= len(data.names):
        return None
    return [data.names[index] for index in columns] + ([data.target or "target"] if is_regression else [])


def _column(text: str, data: Data) -> int:
    """Return the index of a column that --features names; raise if the file does not have it."""
    index, n_columns = column_index(text, data.names), int(data.X.shape[1])
    if index >= n_columns:
        names_text = "" if data.names is None else f", {', '.join(map(repr, data.names))}"
        raise ValueError(f"{data.source} has no column {text}: it has {n_columns}, counted from 0{names_text}")
    return index


def _columns(data: Data, columns: list[int]) -> Any:
    """Return these columns as an array; a column that a file with a single feature does not have is 0."""
    X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    out = np.zeros((X.shape[0], len(columns)))
    for k, index in enumerate(columns):
        if index < X.shape[1]:
            out[:, k] = X[:, index]
    return out


def _classes(data: Data) -> Any:
    """Number the classes 0, 1, …: numbers in descending order (+1 before −1), names in alphabetical order."""
    labels, classes = np.unique(np.asarray(data.y), return_inverse=True)
    if len(labels) > _MOST_CLASSES:
        raise ValueError(f"{data.source} has {len(labels)} classes, but the page takes at most {_MOST_CLASSES}")
    return len(labels) - 1 - classes if labels.dtype.kind in "iuf" else classes


def _server(text: str, port: int) -> ThreadingHTTPServer:
    """Return a server on the loopback address that serves one page."""
    content = text.encode()

    class OnePage(BaseHTTPRequestHandler):
        timeout = 10  # seconds after which a silent connection is closed

        def do_GET(self) -> None:
            if self._answer():
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            self._answer()

        def _answer(self) -> bool:
            """Send the headers of the page, or an error."""
            # A foreign domain name may resolve to 127.0.0.1 (DNS rebinding); its pages must not read this one.
            port = self.connection.getsockname()[1]
            if self.headers.get("Host", "") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
                self.send_error(403, "this page is only for 127.0.0.1 and localhost")
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
            """Log nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), OnePage)
