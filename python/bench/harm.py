#!/usr/bin/env python3
"""What one client can do to the others: a JSON line a figure.

    FOREBAY_TEST_BINARY=target/fast/forebay python bench/harm.py [join|connections|uploads|together|limit|all]

join         `select count(*)` over a cross join of 4 x 10^10 rows by Flight SQL, for 30 s.
connections  1,024 connections, each with messages of 16 MiB (the largest put of one message) at once; and the same bytes of as many to the
             smallest program that takes and drops them, while the other client reads from a server that nobody harms: what is left
             beside that is the share of the cores that who does harm takes, whoever the server is.
uploads      20,000 multipart uploads to a mount of local files that are begun and left.
together     all three at once.
limit        no server of ours: the same bytes by a plain socket from a process that does nothing else, beside one in the same
             session that is busy: what the system's scheduler makes of it.

Each runs beside a client that reads 64 KiB of a warm object again and again: its p99 may be ten times what it is without, and
`forebay up` may not grow beyond what it was told to keep (dram + sql-memory + the budget of requests, and 512 MiB for itself).
Needs the package and adbc-driver-flightsql (PyPI); `connections` needs the smallest program beside the binary, or as
FOREBAY_BENCH_DRAIN: `cargo build --locked --profile fast -p forebay-bench-harness --bin forebay-bench-drain`.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
from adbc_driver_flightsql import DatabaseOptions

import forebay

MIB = 1 << 20
DRAM, SQL_MEMORY, ITSELF = 256 * MIB, 512 * MIB, 512 * MIB
#: The budget of bytes of requests that a process has: an eighth of the memory, at least 256 MiB (docs/operations.md).
REQUESTS = max(256 * MIB, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)
CONNECTIONS, UPLOADS, SECONDS = 1024, 20_000, 30.0
MESSAGE_BYTES = 16 * MIB

#: Who does harm has machines of its own in life, here half of the cores; the server and the other client have the others.
CORES = sorted(os.sched_getaffinity(0))
HARM, OTHERS = CORES[: max(1, len(CORES) // 2)], CORES[len(CORES) // 2 :]


def apart() -> None:
    """In the child: on the cores of those who are harmed, and in a session of its own, which the system shares the cores by."""
    os.setsid()
    os.sched_setaffinity(0, OTHERS)


class Up:
    """`forebay up` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, lake = folder, folder / "lake"
        lake.mkdir()
        ports = [f"--{name}=127.0.0.1:0" for name in ("coordinator-listen", "worker-listen", "http", "flight", "s3")]
        sizes = [f"--dram={DRAM >> 20}MiB", "--disk=0", "--s3-anonymous=write"]
        own = {"HOME": str(folder), "FOREBAY_SQL_MEMORY": f"{SQL_MEMORY >> 20}MiB"}
        self.process = subprocess.Popen(
            [os.environ["FOREBAY_TEST_BINARY"], "up", *ports, *sizes],
            cwd=folder,
            env=dict(os.environ) | own,
            stdout=subprocess.PIPE,
            stderr=(folder / "log").open("w"),
            text=True,
            preexec_fn=apart,
        )
        self.told: dict[str, str] = {}
        assert self.process.stdout
        for line in self.process.stdout:
            words = line.split()
            if len(words) == 2:
                self.told[words[0]] = words[1]
            if not words:
                break
        self.secret = (folder / "forebay-data" / "owner.secret").read_text().strip()
        with forebay.connect(self.address) as fb:
            fb.mounts.add("lake", lake)
            fb.put("/lake/warm", os.urandom(4 * MIB))

    @property
    def address(self) -> str:
        return self.told["coordinator"]

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0


#: A client in a process of its own: reads 64 KiB again and again until its input ends, and says its times.
READER = """
import sys, threading, time, forebay
ends, times = threading.Event(), []
threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
with forebay.connect(sys.argv[1], in_place=False) as fb:
    while not ends.is_set():
        began = time.perf_counter()
        assert len(fb.read("/lake/warm", offset=65_536, length=65_536)) == 65_536
        times.append(time.perf_counter() - began)
        time.sleep(0.005)
print(*times)
"""


class Reader(threading.Thread):
    """The other client, and a look at how large the server is."""

    def __init__(self, up: Up) -> None:
        super().__init__(daemon=True)
        self.up, self.resident, self.ends = up, 0, threading.Event()
        command = [sys.executable, "-c", READER, up.address]
        environment = dict(os.environ) | {"HOME": str(up.folder)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=apart
        )

    def run(self) -> None:
        while not self.ends.wait(0.05):
            self.resident = max(self.resident, self.up.resident_bytes())

    def stop(self) -> tuple[float, int]:
        """The p99 in milliseconds, and the most memory that the server had."""
        self.ends.set()
        self.join()
        times = [float(time) for time in self.process.communicate(timeout=120)[0].split()]
        return statistics.quantiles(times, n=100)[98] * 1e3, self.resident


def figure(what: str, value: float, unit: str, peer: str, peer_value: float, most: float | None) -> None:
    ratio = value / peer_value
    bar, met = ("none", True) if most is None else (f"<= {most}x", ratio <= most)
    line = {"what": what, "value": value, "unit": unit, "peer": peer, "peer_value": peer_value, "ratio": ratio, "bar": bar, "met": met}
    print(json.dumps(line), flush=True)


def measured(up: Up, harm: Callable[[Up], str]) -> tuple[float, float, int, str]:
    """The p99 in milliseconds without harm and beside it, the most memory that the server had, and what the harm came to."""
    quiet = Reader(up)
    quiet.start()
    time.sleep(5)
    before, _ = quiet.stop()
    reader = Reader(up)
    reader.start()
    said = harm(up)
    time.sleep(1)
    during, resident = reader.stop()
    assert up.process.poll() is None, (up.folder / "log").read_text()[-2000:]
    return before, during, resident, said


def beside(name: str, up: Up, harm: Callable[[Up], str]) -> float:
    before, during, resident, said = measured(up, harm)
    figure(f"{name}: p99 of reading 64 KiB meanwhile ({said})", during, "ms", "quiet", before, 10)
    figure(f"{name}: memory of the server", resident, "bytes", "what it may have", DRAM + SQL_MEMORY + REQUESTS + ITSELF, 1)
    return during


def join(up: Up) -> str:
    options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {up.secret}", DatabaseOptions.TIMEOUT_FETCH.value: str(SECONDS)}
    with flight_sql.connect(f"grpc://{up.told['flight-sql']}", db_kwargs={**options}) as connection, connection.cursor() as cursor:
        side = "(select value as {} from generate_series(1, 200000))"
        try:
            cursor.execute(f"select count(*) from {side.format('a')} cross join {side.format('b')} where a + b > 0")
            return f"answered {cursor.fetchone()[0]}"
        except Exception as error:
            return f"ended after {SECONDS:.0f} s: {type(error).__name__}"


def connections(up: Up) -> str:
    data = bytes(MESSAGE_BYTES)
    answered, refused = 0, 0

    def put(number: int) -> bool:
        try:
            with forebay.connect(up.address, in_place=False) as fb:
                fb.put(f"/lake/large/{number}", data)
            return True
        except forebay.Error:
            return False

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for good in pool.map(put, range(CONNECTIONS)):
            answered, refused = answered + good, refused + (not good)
    return f"{answered} of {CONNECTIONS} written, {refused} told to try again"


class Drain:
    """The smallest program that takes messages and drops them, where the server would be."""

    def __init__(self) -> None:
        beside_binary = Path(os.environ["FOREBAY_TEST_BINARY"]).with_name("forebay-bench-drain")
        binary = Path(os.environ.get("FOREBAY_BENCH_DRAIN") or beside_binary).resolve()
        assert binary.exists(), f"{binary} is not there: build it as the head of this file says"
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=apart)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline())

    def messages(self, _: Up) -> str:
        """As many connections as `connections` makes, with the same bytes."""
        message = struct.pack("<I", MESSAGE_BYTES) + bytes(MESSAGE_BYTES)

        def put(_: int) -> bool:
            with socket.create_connection(("127.0.0.1", self.port), timeout=600) as peer:
                peer.sendall(message)
                return peer.recv(1) == b"\x01"

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            taken = sum(pool.map(put, range(CONNECTIONS)))
        return f"{taken} of {CONNECTIONS} taken"

    def stop(self) -> None:
        self.process.communicate(timeout=30)


def limit_of_connections(ours: float) -> None:
    """What the same harm does to who reads from a server that it does not go to."""
    drain = Drain()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder))
        try:
            quiet, limit, _, said = measured(up, drain.messages)
        finally:
            up.stop()
            drain.stop()
    what = f"connections: p99 of reading 64 KiB, and beside the smallest program that takes the same bytes ({said})"
    line = {"what": what, "unit": "ms", "ours": ours, "limit": limit, "limit_quiet": quiet, "ratio": ours / limit}
    print(json.dumps(line), flush=True)


def uploads(up: Up) -> str:
    host = up.told["s3"].removeprefix("http://")

    def begin(numbers: range) -> int:
        connection, begun = http.client.HTTPConnection(host), 0
        for number in numbers:
            connection.request("POST", f"/lake/left/{number}?uploads")
            answer = connection.getresponse()
            answer.read()
            begun += answer.status == 200
        return begun

    with ThreadPoolExecutor(8) as pool:
        begun = sum(pool.map(begin, [range(at, UPLOADS, 8) for at in range(8)]))
    return f"{begun} begun, {UPLOADS - begun} refused"


def together(up: Up) -> str:
    with ThreadPoolExecutor(3) as pool:
        return "; ".join(pool.map(lambda harm: harm(up), [join, connections, uploads]))


#: Answers each byte with 64 KiB; told to, it is busy in a second process too.
PLAIN = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
server = os.getpid()
if sys.argv[1] == "busy" and os.fork() == 0:
    while os.getppid() == server:
        pass
    os._exit(0)
answer, (peer, _) = bytes(65_536), listener.accept()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while peer.recv(1):
    peer.sendall(answer)
"""

#: Reads again and again until its input ends, and says its times.
PLAIN_READER = """
import socket, sys, threading, time
ends, times = threading.Event(), []
threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
peer, buffer = socket.create_connection(("127.0.0.1", int(sys.argv[1]))), bytearray(65_536)
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while not ends.is_set():
    began = time.perf_counter()
    peer.sendall(b"?")
    assert peer.recv_into(buffer, 65_536, socket.MSG_WAITALL) == 65_536
    times.append(time.perf_counter() - began)
    time.sleep(0.005)
print(*times)
"""


def limit() -> None:
    def p99(how: str) -> float:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "preexec_fn": apart}
        server = subprocess.Popen([sys.executable, "-c", PLAIN, how], **pipes)
        assert server.stdout
        reader = subprocess.Popen([sys.executable, "-c", PLAIN_READER, server.stdout.readline().strip()], **pipes)
        time.sleep(SECONDS)
        times = [float(time) for time in reader.communicate(timeout=120)[0].split()]
        server.communicate(timeout=30)
        return statistics.quantiles(times, n=100)[98] * 1e3

    quiet, busy = p99("quiet"), p99("busy")
    figure("limit: p99 of 64 KiB by a plain socket beside one process that is busy", busy, "ms", "quiet", quiet, None)


def main() -> None:
    os.sched_setaffinity(0, HARM)
    harms = {"join": join, "connections": connections, "uploads": uploads, "together": together}
    wanted = sys.argv[1:] or ["all"]
    if "limit" in wanted or "all" in wanted:
        limit()
    for name, harm in harms.items():
        if name in wanted or "all" in wanted:
            with tempfile.TemporaryDirectory() as folder:
                up = Up(Path(folder))
                try:
                    ours = beside(name, up, harm)
                finally:
                    up.stop()
            if name == "connections":
                limit_of_connections(ours)


if __name__ == "__main__":
    main()
