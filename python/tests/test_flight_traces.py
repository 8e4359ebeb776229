"""A call of Flight SQL that names a trace is a part of it, down to each request to shared storage."""

from __future__ import annotations

import http.server
import json
import threading
import time
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pyarrow.parquet as pq
from adbc_driver_flightsql import DatabaseOptions
from test_flight_sql import Up

import forebay

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """Takes spans as a collector of OpenTelemetry does."""

    def __init__(self) -> None:
        self._spans: list[dict] = []
        spans = self._spans

        class Taking(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                scopes = [scope for resource in body["resourceSpans"] for scope in resource["scopeSpans"]]
                spans.extend(span for scope in scopes for span in scope["spans"])
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def above(self, name: str) -> list[list[str]]:
        """The names of the spans above each one of this name of the trace, the nearest first, as far as they have come."""
        spans = {span["spanId"]: span for span in list(self._spans) if span["traceId"] == TRACE}
        ways = []
        for at in [span for span in spans.values() if span["name"] == name]:
            names = []
            while at := spans.get(at.get("parentSpanId")):
                names.append(at["name"])
            ways.append(names)
        return ways

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_a_call_of_a_trace_is_a_part_of_it_to_shared_storage(tmp_path: Path, lake: Path):
    # More than planning reads of a file.
    pq.write_table(pa.table({"n": range(300_000)}), lake / "numbers.parquet", compression="none", use_dictionary=False)
    collector = Collector()
    up = Up(tmp_path, f"--otlp-endpoint={collector.endpoint}")
    try:
        with forebay.connect(up.told["coordinator"]) as fb:
            fb.mounts.add("lake", lake, validate="always")
        options = {
            DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {up.secret}",
            f"{DatabaseOptions.RPC_CALL_HEADER_PREFIX.value}traceparent": f"00-{TRACE}-{PARENT}-01",
        }
        with flight_sql.connect(f"grpc://{up.told['flight-sql']}", db_kwargs=options) as connection, connection.cursor() as cursor:
            cursor.execute("select sum(n) from '/lake/numbers.parquet'")
            assert cursor.fetchone() == (sum(range(300_000)),)
        end = time.monotonic() + 30
        # The driver prepares the statement, which reads the footer, before it runs.
        for part in ("describe", "query"):
            while [part, "flight"] not in (ways := [way[-2:] for way in collector.above("storage get")]):
                assert time.monotonic() < end, (part, ways)
                time.sleep(0.1)
    finally:
        up.stop()
        collector.close()
