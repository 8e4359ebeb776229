"""Chromium, by its debugging protocol."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import websocket
from cluster import free_port, until

WIDTH, HEIGHT = 1280, 900


class Browser:
    def __init__(self, folder: Path) -> None:
        port = free_port()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--remote-debugging-port={port}", "--remote-allow-origins=*"]
        # Pictures of it are the same wherever they are made, but for the fonts.
        flags += ["--force-device-scale-factor=1", "--hide-scrollbars", "--lang=en-US"]
        # It asks for nothing by itself, and has room in containers too.
        flags += ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
        self._process = subprocess.Popen(
            ["chromium", *flags, f"--user-data-dir={folder}", f"--window-size={WIDTH},{HEIGHT}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            page = until("chromium listens", lambda: self._page(port))
            self._socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=30)
            self._number, self.events = 0, []
            for domain in ("Page", "Runtime", "Log"):
                self.call(f"{domain}.enable")
            self.call("Page.bringToFront")
            self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        except BaseException:
            self.close()
            raise

    def _page(self, port: int) -> dict[str, Any] | None:
        """The page that it begins with."""
        assert self._process.poll() is None, f"chromium has ended with {self._process.returncode}: start it by hand to see why"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
            return next((page for page in json.load(answer) if page["type"] == "page"), None)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                if "error" in message:
                    # A page that is just being opened has nothing to ask.
                    raise ConnectionError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def js(self, expression: str, waits: bool = False) -> Any:
        """The value of an expression, or of what it promises."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=waits)["result"].get("value")

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def text(self, name: str) -> str:
        return self.js(f"document.getElementById({name!r})?.innerText") or ""

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def traced(self, categories: list[str], seconds: float) -> list[dict[str, Any]]:
        """Events of Chromium's trace of so many seconds."""
        self.call("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": categories, "excludedCategories": ["*"]})
        # Nothing is asked of the page meanwhile.
        self.wait(seconds)
        self.call("Tracing.end")
        self._next("Tracing.tracingComplete")
        found = [event for part in self.events if part["method"] == "Tracing.dataCollected" for event in part["params"]["value"]]
        self.events = [event for event in self.events if not event["method"].startswith("Tracing.")]
        return found

    def wait(self, seconds: float) -> None:
        """Takes events in meanwhile, so that they do not pile up in the browser."""
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                self._socket.settimeout(left)
                self.events.append(json.loads(self._socket.recv()))
        except websocket.WebSocketTimeoutException:
            pass
        finally:
            self._socket.settimeout(30)

    def _next(self, method: str) -> None:
        while not any(event["method"] == method for event in self.events):
            self.events.append(json.loads(self._socket.recv()))

    def shot(self, scale: float = 1.0) -> bytes:
        """A picture of the window, as PNG."""
        area = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": scale}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=area)["data"])

    def complaints(self) -> list[str]:
        bad = [event for event in self.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
        # Who has no token yet is told so, which Chromium notes.
        # The same of a statement that is refused, and of a dataset that is not there.
        expected = ("401 (Unauthorized)", "/api/v1/sql", "none.shards")
        return [text for text in map(json.dumps, bad) if not any(word in text for word in expected)]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
