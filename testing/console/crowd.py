"""A coordinator of a hundred workers and a million segments, as a page sees it: answers of the real one, of which there are many more."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import time
import urllib.request
from copy import deepcopy
from typing import Any

from cluster import Cluster, until

WORKERS = 100
SEGMENTS = 1_000_000
MOUNTS = 30
TASKS = 1000
TRANSFERS = 400
# Bytes of one answer at most, whatever the cluster has.
ANSWER_MAX = 1 << 20


class Crowd:
    """Serves the console's files of a real cluster beside that; `is_still` answers the same for ever."""

    def __init__(self, cluster: Cluster, *, is_still: bool) -> None:
        self._began, self._is_still = time.monotonic(), is_still
        self._ids = [hashlib.md5(str(number).encode()).hexdigest()[:16] for number in range(WORKERS)]
        self._real = f"http://{cluster.http}"
        self._status = self._many_workers(cluster.ask("status"))
        self._of = {
            "segments": self._many_segments(_known(cluster, "segments?limit=1", "segments")),
            "filled": self._many_parts(_known(cluster, "filled", "tables")),
            "savings": _plain(cluster.ask("savings")) | {"saved_bytes": 1 << 50, "saved_requests": 10**9, "saved_seconds": 1e7, "saved_money": 22_517.99},
            "jobs": self._many(cluster.ask("jobs"), "jobs", 100),
            "tasks": self._many(cluster.ask("tasks"), "tasks", TASKS),
            "transfers": self._transfers(cluster.ask("transfers")),
            "load": self._many(cluster.ask("load"), "loads", 100),
        }
        for name, answer in {"status": self._status, **self._of}.items():
            size = len(json.dumps(answer))
            assert size < ANSWER_MAX, f"{name}: {size} bytes"
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Serving", (_Serving,), {"crowd": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.http = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _many_workers(self, status: dict[str, Any]) -> dict[str, Any]:
        [worker, *_], [mount, *_] = status["workers"], status["mounts"]
        status |= {"version": "1.0.0", "metadata": "sqlite", "uptime_secs": 86_400.0, "workers": [], "pins": []}
        for number, name in enumerate(self._ids):
            one = _plain(worker) | {"id": name, "state": "live", "warnings": [], "address": f"10.0.{number // 50}.{number % 50 + 1}:7401", "location": f"rack-{number // 10}"}
            one |= {"segments": SEGMENTS // WORKERS, "reads": 1_000_000 + number, "served_bytes": (5 + number) << 30, "hit_bytes": (4 + number) << 30}
            one |= {"decoded_bytes": (number % 5) << 30}
            one["dram"] |= {"capacity_bytes": 64 << 30, "used_bytes": (20 + number % 40) << 30, "kept_bytes": 2 << 30, "temporary_bytes": 1 << 30, "decoded_bytes": (number % 5) << 30, "layer_bytes": 0}
            one["disk"] |= {"capacity_bytes": 1 << 40, "used_bytes": (100 + 8 * number) << 30, "kept_bytes": 0, "temporary_bytes": 0, "decoded_bytes": (number % 3) << 30, "layer_bytes": (number % 7) << 33}
            status["workers"].append(one)
        status["mounts"] = [
            _plain(mount) | {"name": f"lake-{number}", "url": f"s3://data/lake-{number}", "requests": 1000 * number, "bound_bytes_per_sec": 1 << 30}
            for number in range(MOUNTS)
        ]
        return status

    def _many_segments(self, placement: dict[str, Any]) -> dict[str, Any]:
        """The first 500, which is what the page asks for; the hottest are everywhere."""
        [segment] = placement["segments"]
        segment = {name: value for name, value in _plain(segment).items() if name not in ("row_group", "column")}
        segments = []
        for number in range(500):
            holders = self._ids if number < 10 else self._ids[number % 97 : number % 97 + 1 + 200 // (number + 10)]
            part = 100 // len(holders)
            one = segment | {"path": f"/lake-{number % MOUNTS}/year=2026/month={number % 12 + 1}/part-{number:05}.parquet", "index": number % 7}
            one |= {"segment": hashlib.md5(f"segment {number}".encode()).hexdigest(), "popularity": 10_000 / (number + 1), "operations": 10_000 // (number + 1)}
            one |= {"held": [{"worker": name, "bytes": 64 << 20} for name in holders], "loading": []}
            one |= {"planned": [{"worker": name, "weight": part} for name in holders], "routing": [{"worker": name, "weight": part} for name in holders]}
            segments.append(one)
        many = {"segments_known": SEGMENTS, "replicas_held": 3 * SEGMENTS, "replicas_planned": 3 * SEGMENTS, "routes": SEGMENTS // 10}
        return _plain(placement) | many | {"replicas_loading": 0, "window_secs": 60.0, "unsatisfied": [], "segments": segments}

    def _many_parts(self, answer: dict[str, Any]) -> dict[str, Any]:
        """25 mounts and as many tables, which is what the page asks for: each on some more workers than the next."""

        def part(path: str, number: int) -> dict[str, Any]:
            on = [((place * 37 + number) % 100 + 1) << 20 if (place * 61) % 100 < 100 - 2 * number else 0 for place in range(WORKERS)]
            held = {"bytes": sum(on), "decoded_bytes": sum(on) // 8, "distinct_bytes": sum(on) // (1 + number % 3), "popularity": 1000 / (number + 1)}
            like = _plain(answer["tables"][0])
            return like | {"path": path, "by_worker": on, "held": like["held"] | held}

        mounts = [part(f"/lake-{number}/", number) for number in range(25)]
        tables = [part(f"/lake-{number % 5}/table-{number:02}/", number) for number in range(25)]
        many = {"workers": self._ids, "workers_known": WORKERS, "mounts_known": MOUNTS, "tables_known": 5000}
        return _plain(answer) | many | {"held": mounts[0]["held"] | {"popularity": 5000.0}, "mounts": mounts, "tables": tables}

    def _many(self, answer: dict[str, Any], what: str, count: int) -> dict[str, Any]:
        """So many of what the real one has, with names and times of their own."""
        found = answer[what]
        assert found, f"the cluster has no {what} to make more of"
        made = []
        for number in range(count):
            one = _plain(found[0]) | {"state": "done"}
            own = {"id": f"{number:08x}", "job": f"{number % 100:08x}", "worker": f"10.0.0.{number % 16}:7401", "ended_seconds_ago": number * 0.1}
            own |= {"path": f"/lake-0/part-{number}.parquet", "sql": f"select sum(value) from '/lake-{number}/'", "who": "token of a dashboard"}
            made.append(one | {field: value for field, value in own.items() if field in one})
        return answer | {what: made}

    def _transfers(self, answer: dict[str, Any]) -> dict[str, Any]:
        """There may be none in a small cluster at a time."""
        like = {"path": "/lake-0/year=2026/part-00001.parquet", "bytes": 64 << 20, "seconds": 0.5}
        like = (answer["transfers"] or [like])[0]
        made = [like | {"worker": f"10.0.0.{number % 16}:7401", "start": number << 20} for number in range(TRANSFERS)]
        return answer | {"transfers": made}

    def status(self) -> dict[str, Any]:
        """As it is now."""
        seconds = 0 if self._is_still else int(time.monotonic() - self._began)
        status = deepcopy(self._status)
        for number, worker in enumerate(status["workers"]):
            for field, speed in (("reads", 100), ("served_bytes", 200 << 20), ("hit_bytes", 150 << 20)):
                worker[field] += seconds * speed * (number + 1) // WORKERS
        for mount in status["mounts"]:
            mount["requests"] += seconds * 10
            mount["counters"]["bytes_in"] += seconds * (5 << 20)
        return status

    def answer(self, what: str) -> dict[str, Any] | None:
        return self.status() if what == "status" else self._of.get(what)


class _Serving(http.server.BaseHTTPRequestHandler):
    crowd: Crowd
    wbufsize = -1

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        what = path.removeprefix("/api/v1/") if path.startswith("/api/v1/") else ""
        if what == "events":
            return self._events()
        answer = self.crowd.answer(what) if what else None
        if answer is not None:
            return self._send(200, {"content-type": "application/json"}, json.dumps(answer).encode())
        with urllib.request.urlopen(self.crowd._real + self.path) as file:
            # With its policy of what may be loaded and run.
            kept = {name: value for name, value in file.headers.items() if name.lower() not in ("content-length", "connection", "date", "transfer-encoding")}
            self._send(200, kept, file.read())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _events(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        try:
            while True:
                self.wfile.write(f"event: status\ndata: {json.dumps(self.crowd.status())}\n\n".encode())
                self.wfile.flush()
                time.sleep(1)
        except OSError:
            # Who watched has gone.
            pass


def _known(cluster: Cluster, path: str, what: str) -> dict[str, Any]:
    """What is answered once something is known that was read."""

    def known() -> dict[str, Any] | None:
        cluster.run("sql", "select sum(id) from '/lake/a.csv'")
        answer = cluster.ask(path)
        return answer if answer[what] else None

    return until(f"something that was read is in {path}", known)


def _plain(value: Any) -> Any:
    """The same with numbers that are the same each time: those of a real cluster never are."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return type(value)(4) if type(value) in (int, float) else value
