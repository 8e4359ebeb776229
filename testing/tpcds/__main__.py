"""TPC-DS against DuckDB's answers: `python testing/tpcds check`, `python testing/tpcds losses --minutes 30`."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from clients import HANGS_SECS, Clients, Told, ask
from cluster import Cluster
from data import Data
from kills import Kills

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="testing/tpcds", description="TPC-DS on a cluster of processes, against DuckDB's answers.")
    parser.add_argument("what", choices=("check", "losses"))
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--size", type=int, default=3, help="workers, and executors beside them")
    parser.add_argument("--query", type=int, action="append", help="check: only these")
    parser.add_argument("--rounds", type=int, default=1, help="check: times that each is asked; the last one's time is told")
    parser.add_argument("--clients", type=int, default=8, help="losses: queries at once")
    parser.add_argument("--minutes", type=float, default=30, help="losses: how long processes are killed; without kills a third of it, before")
    parser.add_argument("--seed", type=int, default=1, help="losses: of what is asked and killed")
    parser.add_argument("--folder", type=Path, help="where logs stay; else they go")
    options = parser.parse_args()
    binary = Path(os.environ.get("FOREBAY_TEST_BINARY") or Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "fast/forebay")
    cache = Path(os.environ.get("FOREBAY_CACHE") or Path.home() / ".cache/forebay")
    data = Data(cache / "tpcds", options.scale, os.cpu_count() or 2)
    with tempfile.TemporaryDirectory(prefix="forebay-tpcds-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        cluster = Cluster(binary, folder, data.folder / "tables", options.size)
        try:
            for name in data.tables:
                made = cluster.command("sql", f"create external table {name} stored as parquet location '/lake/{name}/'")
                assert made.returncode == 0, made.stderr
            return check(cluster, data, options) if options.what == "check" else losses(cluster, data, options)
        finally:
            cluster.stop()


def check(cluster: Cluster, data: Data, options: Any) -> int:
    """Each query on the cluster and in one process, a JSON line each."""
    bad, ratios = 0, []
    for number in options.query or sorted(data.queries):
        told: dict[str, Told] = {}
        for way, flags in (("cluster", ()), ("process", ("--scheduler", "off"))):
            for _ in range(options.rounds):
                told[way] = ask(cluster, data, number, HANGS_SECS, *flags)
        bad += sum(one.verdict not in ("right", "known") for one in told.values())
        ratios.append(told["cluster"].secs / told["process"].secs)
        line = {"query": number, "duckdb_secs": round(data.secs[number], 3)}
        for way, one in told.items():
            line |= {way: one.verdict, f"{way}_secs": round(one.secs, 3)} | ({f"{way}_detail": one.detail} if one.detail else {})
        print(json.dumps(line), flush=True)
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    print(json.dumps({"queries": len(ratios), "not_right": bad, "cluster_over_process_mean": round(mean, 3), "worst": round(max(ratios), 2)}))
    return 1 if bad else 0


def losses(cluster: Cluster, data: Data, options: Any) -> int:
    """Clients without kills, then with them."""
    secs = options.minutes * 60
    calm = Clients(cluster, data, options.clients, options.seed)
    calm.run(secs / 3)
    undisturbed = calm.join()
    longest: dict[int, float] = {}
    for told in undisturbed:
        longest[told.number] = max(longest.get(told.number, 0.0), told.secs)
    kills = Kills(cluster, options.seed, secs)
    stormy = Clients(cluster, data, options.clients, options.seed + 1, longest)
    kills.start()
    stormy.run(secs)
    disturbed = stormy.join()
    kills.stop()
    rates = [sum(told.verdict in ("right", "known") for told in all_told) / over for all_told, over in ((undisturbed, secs / 3), (disturbed, secs))]
    verdicts = [Counter(told.verdict for told in all_told) for all_told in (undisturbed, disturbed)]
    print(json.dumps({
        "undisturbed": verdicts[0], "undisturbed_a_minute": round(60 * rates[0], 1), "disturbed": verdicts[1], "disturbed_a_minute": round(60 * rates[1], 1),
        "ratio": round(rates[1] / rates[0], 3), "kills": kills.kills, "kills_amid_a_query": kills.amid, "restarts_of_coordinator_and_scheduler": kills.restarts,
        "slowest_secs": round(max(told.secs for told in disturbed), 1), "minutes": options.minutes, "seed": options.seed, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }), flush=True)
    return 1 if any(told.verdict not in ("right", "known") for told in undisturbed + disturbed) else 0


if __name__ == "__main__":
    sys.exit(main())
