"""A browser that a test drives: Chromium through its driver, by the WebDriver protocol over plain HTTP."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

DRIVER, CHROMIUM = shutil.which("chromedriver"), shutil.which("chromium")


class Browser:
    """One window; `with` closes it."""

    def __init__(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        assert DRIVER is not None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._root = f"http://127.0.0.1:{port}"
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        flags += [f"--window-size={width},{height}"]
        if dark:
            flags += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
        wanted = {"goog:chromeOptions": {"args": flags, "binary": CHROMIUM}}
        wanted["goog:loggingPrefs"] = {"browser": "ALL", "performance": "ALL"}
        for _ in range(100):
            try:
                made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except OSError:
                time.sleep(0.1)
        self._root += f"/session/{made['sessionId']}"
        self.size(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self._send("DELETE", "")
        finally:
            self._process.terminate()
            self._process.wait(10)

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            if error.code == 404 and path == "":
                return None
            raise AssertionError(json.loads(error.read())["value"]["message"]) from None

    def size(self, width: int, height: int) -> None:
        """As many pixels as a phone or a screen has, whatever the window manager allows."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.chrome("Emulation.setDeviceMetricsOverride", metrics)

    def chrome(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def theme(self, name: str) -> None:
        self.chrome("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def open(self, url: str) -> None:
        self._send("POST", "/url", {"url": url})
        self.wait("return document.documentElement.dataset.ready === '1'")

    def visit(self, url: str) -> None:
        """A page of the site, which has no mark of its own that it is ready."""
        self._send("POST", "/url", {"url": url})
        self.wait("return document.readyState === 'complete'")

    def run(self, script: str, *args: Any) -> Any:
        return self._send("POST", "/execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script: str, *args: Any) -> Any:
        return self._send("POST", "/execute/async", {"script": script, "args": list(args)})

    def wait(self, script: str, seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"this did not become true: {script}"
            time.sleep(0.03)

    def settle(self) -> None:
        """Until what follows the last change has been drawn."""
        self.run_async(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 250)))"
        )

    def element(self, selector: str) -> dict[str, float]:
        """Where it is in the window, after scrolling it there."""
        box: dict[str, float] = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const {left, top, width, height} = e.getBoundingClientRect(); return {left, top, width, height};",
            selector,
        )
        return box

    def gesture(self, places: list[tuple[float, float]], kind: str = "mouse") -> None:
        """Press at the first place, go along the others, and let go at the last."""
        steps: list[dict[str, Any]] = [
            {"type": "pointerMove", "duration": 0, "x": round(places[0][0]), "y": round(places[0][1])},
            {"type": "pointerDown", "button": 0},
        ]
        steps += [{"type": "pointerMove", "duration": 30, "x": round(x), "y": round(y)} for x, y in places[1:]]
        steps.append({"type": "pointerUp", "button": 0})
        actions = [{"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": steps}]
        self._send("POST", "/actions", {"actions": actions})

    def click(self, selector: str) -> None:
        box = self.element(selector)
        self.gesture([(box["left"] + box["width"] / 2, box["top"] + box["height"] / 2)])

    def keys(self, *keys: str) -> None:
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def chord(self, modifier: str, key: str) -> None:
        steps = [("keyDown", modifier), ("keyDown", key), ("keyUp", key), ("keyUp", modifier)]
        actions = [{"type": kind, "value": value} for kind, value in steps]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def into_frame(self, selector: str) -> None:
        """Run what follows in this frame, whatever its origin."""
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        self._send("POST", "/frame", {"id": found})

    def out_of_frame(self) -> None:
        self._send("POST", "/frame", {"id": None})

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        if whole:
            found = self.chrome("Page.captureScreenshot", {"captureBeyondViewport": True})
            path.write_bytes(base64.b64decode(found["data"]))
            return
        path.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))

    def log(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._send("POST", "/se/log", {"type": kind})
        return found
