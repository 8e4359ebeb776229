"""TPC-DS against DuckDB's answers: `python testing/tpcds check`."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from ask import Told, ask
from cluster import Cluster
from data import Data

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="testing/tpcds", description="TPC-DS on a cluster of processes, against DuckDB's answers.")
    parser.add_argument("what", choices=("check", "data"), help="ask; or only make tables, queries and answers, and print their folder")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--size", type=int, default=3, help="workers, and executors beside them")
    parser.add_argument("--distribute-from", default="0B", help="what a query reads at least to run on the cluster")
    parser.add_argument("--form", choices=("parquet", "albis"), default="parquet", help="check: what the tables' files are")
    parser.add_argument("--query", type=int, action="append", help="check: only these")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="check: a setting of the engine for each query")
    parser.add_argument("--rounds", type=int, default=1, help="check: times that each is asked; the last one's time is told")
    parser.add_argument("--folder", type=Path, help="where logs stay; else they go")
    options = parser.parse_args()
    binary = Path(os.environ.get("FOREBAY_TEST_BINARY") or Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "fast/forebay")
    cache = Path(os.environ.get("FOREBAY_CACHE") or Path.home() / ".cache/forebay")
    data = Data(cache / "tpcds", options.scale, os.cpu_count() or 2)
    if options.what == "data":
        print(data.folder)
        return 0
    with tempfile.TemporaryDirectory(prefix="forebay-tpcds-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        lake = data.folder / "tables" if options.form == "parquet" else data.as_tables(binary)
        cluster = Cluster(binary, folder, lake, options.size, options.distribute_from)
        try:
            for name in data.tables:
                made = cluster.command("sql", f"create external table {name} stored as {options.form} location '/lake/{name}/'")
                assert made.returncode == 0, made.stderr
            return check(cluster, data, options)
        finally:
            cluster.stop()


def check(cluster: Cluster, data: Data, options: Any) -> int:
    """Each query on the cluster and in one process, a JSON line each."""
    bad, ratios = 0, []
    for number in options.query or sorted(data.queries):
        told: dict[str, Told] = {}
        for way, flags in (("cluster", ()), ("process", ("--scheduler", "off"))):
            for _ in range(options.rounds):
                told[way] = ask(cluster, data, number, *flags, settings=options.set)
        bad += sum(one.verdict != "right" for one in told.values())
        ratios.append(told["cluster"].secs / told["process"].secs)
        line = {"query": number, "duckdb_secs": round(data.secs[number], 3)}
        for way, one in told.items():
            line |= {way: one.verdict, f"{way}_secs": round(one.secs, 3)} | ({f"{way}_detail": one.detail} if one.detail else {})
        print(json.dumps(line), flush=True)
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    print(json.dumps({"queries": len(ratios), "not_right": bad, "cluster_over_process_mean": round(mean, 3), "worst": round(max(ratios), 2)}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
