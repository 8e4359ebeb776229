#!/usr/bin/env python3
"""Benchmarks of the Python package: a JSON line a figure, with the peer's of the same run and the ratio.

    python bench/bench_python.py [read|table|nodes|all]

read    a warm read of 1 MB by another process' worker on this host, against redis-py's get of the same bytes. All bytes are
        summed on both sides in one figure (`consumed`), and only had in another (`read`).
table   a PyArrow table from a warm Parquet file through fsspec, against the same file on the local disk, in the page cache.
nodes   put and get of a key-value of 1 MB in the temporary namespace of a worker on this host, against redis-py's set and get,
        and against put and get of Ray's object store (plasma), where ray is installed.

Needs the package, pyarrow, numpy, redis (PyPI) and redis-server (apt); ray (PyPI) for its figures.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket as socketlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet

import forebay

MB = 1_000_000

SERVER = """
import sys, forebay
fb = forebay.up(sys.argv[1], dram="2GiB", disk=0)
print(fb.address, flush=True)
sys.stdin.read()
"""


def alternated(ours: Callable[[], object], peer: Callable[[], object], rounds: int, calls: int) -> tuple[float, float]:
    """Median seconds a call of each, in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for at, call in enumerate((ours, peer)):
            started = time.perf_counter()
            for _ in range(calls):
                call()
            times[at].append((time.perf_counter() - started) / calls)
    return statistics.median(times[0]), statistics.median(times[1])


def report(bench: str, what: str, ours: float, peer: float, peer_name: str, bar: float) -> None:
    ratio = peer / ours
    print(
        json.dumps({
            "bench": bench,
            "what": what,
            "forebay_us": round(ours * 1e6, 1),
            "peer": peer_name,
            "peer_us": round(peer * 1e6, 1),
            "times_the_peers_speed": round(ratio, 2),
            "bar": bar,
            "met": ratio >= bar,
        }),
        flush=True,
    )


@contextlib.contextmanager
def redis_peers(scratch: Path) -> Iterator[dict[str, Any]]:
    """Two servers and their clients, by what they are called."""
    import redis

    server = shutil.which("redis-server")
    if server is None:
        sys.exit("the peer is missing: apt-get install redis-server")
    socket = scratch / "redis.sock"
    with socketlib.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ways = {
        "unix socket": (["--port", "0", "--unixsocket", str(socket)], redis.Redis(unix_socket_path=str(socket))),
        "tcp": (["--port", str(port), "--bind", "127.0.0.1"], redis.Redis(port=port)),
    }
    common = [server, "--save", "", "--dir", str(scratch)]
    processes = [subprocess.Popen([*common, *way], stdout=subprocess.DEVNULL) for way, _ in ways.values()]
    try:
        for _, peer in ways.values():
            for _ in range(100):
                try:
                    peer.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
        yield {name: peer for name, (_, peer) in ways.items()}
    finally:
        for process in processes:
            process.terminate()


def consume(view: Any) -> int:
    return int(numpy.frombuffer(view, dtype=numpy.uint64).sum())


def read(fb: forebay.Client, lake: Path, scratch: Path) -> None:
    data = os.urandom(MB)
    (lake / "x.bin").write_bytes(data)
    with redis_peers(scratch) as peers:
        for way, peer in peers.items():
            name = f"redis-py get, {way}"
            peer.set("x", data)
            assert fb.read("/lake/x.bin") == data == peer.get("x")
            ours, theirs = alternated(lambda: fb.read("/lake/x.bin"), lambda peer=peer: peer.get("x"), 7, 50)
            report("read", "1 MB, had", ours, theirs, name, 3)
            ours, theirs = alternated(
                lambda: consume(fb.read("/lake/x.bin")), lambda peer=peer: consume(peer.get("x")), 9, 200
            )
            report("read", "1 MB, had and summed", ours, theirs, name, 3)
            ours, theirs = alternated(lambda: bytes(fb.read("/lake/x.bin")), lambda peer=peer: peer.get("x"), 7, 50)
            report("read", "1 MB, copied into bytes", ours, theirs, name, 3)


def nodes(fb: forebay.Client, scratch: Path) -> None:
    data = os.urandom(MB)
    path = "/tmp/x"

    def put() -> None:
        fb.nodes.put(path, data)

    def get() -> Any:
        return fb.nodes.get(path)

    with redis_peers(scratch) as peers:
        for way, peer in peers.items():
            peer.set("x", data)
            put()
            assert get() == data == peer.get("x")
            ours, theirs = alternated(put, lambda peer=peer: peer.set("x", data), 9, 100)
            report("nodes", "put of 1 MB", ours, theirs, f"redis-py set, {way}", 3)
            ours, theirs = alternated(get, lambda peer=peer: peer.get("x"), 9, 100)
            report("nodes", "get of 1 MB", ours, theirs, f"redis-py get, {way}", 3)
            ours, theirs = alternated(lambda: consume(get()), lambda peer=peer: consume(peer.get("x")), 9, 100)
            report("nodes", "get of 1 MB, summed", ours, theirs, f"redis-py get, {way}", 3)
    try:
        import ray
    except ImportError:
        print("no figures of Ray's object store: pip install ray", file=sys.stderr)
        return
    ray.init(num_cpus=1, include_dashboard=False, configure_logging=False, log_to_driver=False, object_store_memory=512 << 20)
    try:
        array = numpy.frombuffer(data, dtype=numpy.uint8)
        held = ray.put(array)
        ours, theirs = alternated(put, lambda: ray.put(array), 9, 100)
        report("nodes", "put of 1 MB", ours, theirs, "ray.put of a numpy array (plasma)", 3)
        ours, theirs = alternated(get, lambda: ray.get(held), 9, 100)
        report("nodes", "get of 1 MB", ours, theirs, "ray.get (plasma)", 1)
    finally:
        ray.shutdown()


def table(fb: forebay.Client, lake: Path) -> None:
    rows = 3_000_000
    random = numpy.random.default_rng(1)
    made = pyarrow.table({
        "key": random.integers(0, 1 << 40, rows),
        "price": random.random(rows),
        "day": random.integers(0, 2_000, rows).astype("int32"),
        "word": pyarrow.array(random.integers(0, 1_000, rows).astype(str)),
    })
    local = lake / "table.parquet"
    pyarrow.parquet.write_table(made, local)
    fs = fb.fs

    def ours() -> int:
        return pyarrow.parquet.read_table("/lake/table.parquet", filesystem=fs).num_rows

    def peer() -> int:
        return pyarrow.parquet.read_table(local).num_rows

    assert ours() == peer() == rows
    mine, theirs = alternated(ours, peer, 7, 2)
    report("table", f"{local.stat().st_size >> 20} MiB of Parquet, {rows:,} rows", mine, theirs, "the local file, page cache", 0.8)


def main() -> None:
    which = sys.argv[1] if len(sys.argv) > 1 else "all"
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        scratch = Path(folder)
        lake = scratch / "lake"
        lake.mkdir()
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(scratch / "data")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert server.stdout
        try:
            with forebay.connect(server.stdout.readline().strip()) as fb:
                fb.mounts.add("lake", lake)
                if which in ("read", "all"):
                    read(fb, lake, scratch)
                if which in ("table", "all"):
                    table(fb, lake)
                if which in ("nodes", "all"):
                    nodes(fb, scratch)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
