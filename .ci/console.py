"""Drives the console of a real cluster in Chromium, by its debugging protocol: `.ci/test-console [FOLDER FOR SCREENSHOTS]`."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import websocket

_PAGES = {
    "now": ["Served", "From shared storage", "/lake/", "of 47.7 MiB/s"],
    "map": ["live", "of 64.0 MiB", "temporary nodes"],
    "popularity": ["windows of 1 s", "/lake/a.csv", "while this page is open"],
    "jobs": ["s ago", "at w", "select sum(id) from '/lake/a.csv'", "done", "token console.1"],
    "health": ["All 2 workers are live"],
}

# Updates that are timed together.
_UPDATES = 6

_FILES = ["/", *(f"/console/{name}" for name in ("console.js", "jobs.js", "shards.js", "query.js", "console.css", "uplot.js", "uplot.css"))]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what: str, holds, within: float = 30):
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            found = holds()
        except OSError:
            found = None
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {within:.0f} s: {what}")


class Cluster:
    """Two workers, a mount with a bound, and reads of one file all the time."""

    def __init__(self, binary: str, home: Path) -> None:
        self._binary, self._home = binary, home
        self._coordinator, self.http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        off = ["--flight", "127.0.0.1:0", "--s3", "off", "--window", "1s", "--dram", "128MiB", "--disk", "128MiB", "--cluster", "2"]
        off += [word for flag in ("--worker-listen", "--scheduler-listen", "--executor-listen") for word in (flag, "127.0.0.1:0")]
        self._up = subprocess.Popen(
            [binary, "up", "--coordinator-listen", self._coordinator, "--http", self.http, *off],
            env=self._environment(), cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        until("the cluster is up", lambda: urllib.request.urlopen(f"http://{self.http}/readyz").read() == b"ready\n")
        (home / "lake").mkdir()
        (home / "lake/a.csv").write_text("id,word\n" + "".join(f"{row},w{row % 7}\n" for row in range(20_000)))
        self.run("mount", "add", "lake", f"file://{home}/lake", "--bandwidth", "400Mbit")
        self.token = json.loads(self.run("token", "add", "console", "--read", "--json"))["token"]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOREBAY_", "AWS_"))}
        # Little data goes to the executors too, so that there are jobs.
        return {**kept, "HOME": str(self._home), "FOREBAY_DISTRIBUTE_FROM": "0B"}

    def run(self, *arguments: str) -> str:
        command = [self._binary, *arguments, "--coordinator", self._coordinator]
        return subprocess.run(command, env=self._environment(), check=True, capture_output=True, text=True).stdout

    def load(self, path: str) -> None:
        request = urllib.request.Request(f"http://{self.http}/api/v1/load?path={path}", method="POST", headers={"Authorization": f"Bearer {self.token}"})
        urllib.request.urlopen(request).close()

    def close(self) -> None:
        self._up.terminate()
        self._up.wait(30)


class Browser:
    def __init__(self, folder: Path) -> None:
        port = free_port()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--remote-debugging-port={port}", "--remote-allow-origins=*"]
        self._process = subprocess.Popen(
            ["chromium", *flags, f"--user-data-dir={folder}", "--window-size=1280,900", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        pages = until("chromium listens", lambda: json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json")))
        [page] = [page for page in pages if page["type"] == "page"]
        self._socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=30)
        self._number, self.events = 0, []
        for domain in ("Page", "Runtime", "Log", "Performance"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters) -> dict:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                return message.get("result", message)
            self.events.append(message)

    def js(self, expression: str):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def spent(self) -> float:
        """Seconds that script, styles and layout have taken of the main thread since the page was opened."""
        metrics = {metric["name"]: metric["value"] for metric in self.call("Performance.getMetrics")["metrics"]}
        return metrics["ScriptDuration"] + metrics["RecalcStyleDuration"] + metrics["LayoutDuration"]

    def shot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        bad = [event for event in self.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
        # Who has no token yet is told so, which Chromium notes.
        # The same of a statement that is refused, and of a dataset that is not there.
        expected = ("401 (Unauthorized)", "/api/v1/sql", "none.shards")
        return [text for text in map(json.dumps, bad) if not any(word in text for word in expected)]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def text_of(browser: Browser, name: str) -> str:
    return browser.js(f"document.getElementById({name!r}).innerText") or ""


def look_at_shards(cluster: Cluster, browser: Browser) -> None:
    """The dials of a dataset that is asked meanwhile."""
    cluster.run("shard", "create", "/lake/a.shards", "--from", "/lake/a.csv", "--key", "id", "--shards", "2")
    show = "document.getElementById('dataset-form').requestSubmit()"
    browser.js(f"location.hash = 'shards'; document.getElementById('dataset').value = '/lake/none.shards'; {show}")
    until("what is not there is said", lambda: "none.shards" in text_of(browser, "shards-state"))
    browser.js(f"document.getElementById('dataset').value = '/lake/a.shards'; {show}")

    def shows() -> bool:
        cluster.run("shard", "get", "/lake/a.shards", "7", "8", "9")
        drawn = browser.js("document.querySelectorAll('#curve .dot').length")
        return "2 shards with 20,000 records" in text_of(browser, "shards-state") and drawn and "x of 0.90x" in text_of(browser, "replicas")

    until("shards shows where its dials stand", shows)


def look_at_query(browser: Browser) -> None:
    """Rows with their plan, what was measured, and why there is no answer."""
    browser.js("location.hash = 'query'")

    def answered(statement: str, measured: bool, wanted: dict[str, str]) -> None:
        run = "document.getElementById('query-form').requestSubmit()"
        browser.js(f"document.getElementById('measured').checked = {json.dumps(measured)}")
        browser.js(f"document.getElementById('statement').value = {json.dumps(statement)}; {run}")
        until(f"{statement}: {wanted}", lambda: all(word in text_of(browser, name) for name, word in wanted.items()), 60)

    statement = "select count(*) as rows_of_it from '/lake/a.csv'"
    answered(statement, False, {"query-state": "1 rows in", "rows-head": "rows_of_it", "rows": "20000", "plan": "Exec", "served-by": "%"})
    answered(statement, True, {"query-state": "measured in", "plan": "DataSourceExec"})
    answered("drop table t", False, {"query-state": "only statements that read"})


def first_paint(cluster: Cluster, browser: Browser) -> float:
    browser.call("Page.navigate", url=f"http://{cluster.http}/?{time.monotonic()}")
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    return until("something is painted", lambda: browser.js(paint))


def is_smooth(browser: Browser, page: str) -> bool:
    """Whether no task of the main thread takes 50 ms, which is what a browser calls a long one, and an update less than a frame: there is
    one a second, on *Popularity* one each two."""
    browser.js(f"location.hash = {page!r}")
    # Opening it is no update.
    time.sleep(1)
    observe = "window.watching = new PerformanceObserver((list) => window.long.push(...list.getEntries().map((task) => task.duration)))"
    browser.js(f"window.watching?.disconnect(); window.long = []; {observe}; window.watching.observe({{ type: 'longtask' }}); 0")
    before = browser.spent()
    time.sleep(_UPDATES)
    an_update, long = (browser.spent() - before) / _UPDATES, browser.js("window.long.join()")
    print(f"{page}: {an_update * 1000:.1f} ms an update, long tasks: {long or 'none'}", flush=True)
    return an_update < 0.016 and not long


def look(cluster: Cluster, browser: Browser, shots: Path | None) -> int:
    passed = 0

    def done(name: str) -> None:
        nonlocal passed
        passed += 1
        print(f"test console {name} ... ok", flush=True)
        if shots:
            browser.shot(shots / f"{name}.png")

    browser.call("Page.navigate", url=f"http://{cluster.http}/")
    until("it asks who is there", lambda: browser.js("document.getElementById('login').open"))
    assert "lake" not in browser.js("document.body.innerText")
    done("login")
    enter = "document.querySelector('#login form').requestSubmit(document.querySelector('#login button'))"
    browser.js(f"document.getElementById('token').value = '0123456789abcdef'; {enter}")
    until("a guess is told off", lambda: "may not read" in (browser.js("document.getElementById('login-error').innerText") or ""))
    done("guess")
    browser.js(f"document.getElementById('token').value = {cluster.token!r}; {enter}")
    cluster.load("/lake/a.csv")
    for page, words in _PAGES.items():
        browser.js(f"location.hash = {page!r}")

        def shows() -> bool:
            cluster.run("sql", "select sum(id) from '/lake/a.csv'")
            text = browser.js(f"document.getElementById({page!r}).innerText") or ""
            return all(word in text for word in words)

        until(f"{page} shows {words}", shows)
        if page == "jobs":
            until("tasks are drawn", lambda: browser.js("document.querySelectorAll('#times .task.done').length") > 0)
        done(page)
    look_at_shards(cluster, browser)
    done("shards")
    look_at_query(browser)
    done("query")
    size = sum(len(urllib.request.urlopen(f"http://{cluster.http}{path}").read()) for path in _FILES)
    assert size < 300_000, f"{size} bytes of files"
    # A machine that is busy has its moments too.
    until("first paint under 1 s", lambda: first_paint(cluster, browser) < 1000, 60)
    done("light")
    for page in _PAGES:
        until(f"{page} is smooth", lambda page=page: is_smooth(browser, page), 90)
    done("smooth")
    browser.js("location.hash = 'now'; document.getElementById('theme').click()")
    until("the other theme", lambda: browser.js("document.documentElement.dataset.theme") in ("dark", "light"))
    browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    time.sleep(0.5)
    assert browser.js("document.documentElement.scrollWidth") <= 400, "a phone scrolls one way only"
    done("phone")
    assert not browser.complaints(), browser.complaints()
    done("silent")
    return passed


def main() -> int:
    shots = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        cluster = Cluster(sys.argv[1], home)
        browser = Browser(home / "chromium")
        try:
            passed = look(cluster, browser, shots)
        finally:
            browser.close()
            cluster.close()
    print(f"test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
