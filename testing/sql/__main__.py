"""Random SQL against DuckDB: `python testing/sql --mode plain --seed 1 --queries 100`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from runner import Runner
from servers import MODES, Servers

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="testing/sql", description="Random SQL, answered by Forebay and by DuckDB.")
    parser.add_argument("--seed", type=int, default=1, help="the first query's seed; each query has the next one")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--mode", choices=MODES, action="append", help="one or more; all when not given")
    parser.add_argument("--failures", type=int, default=10, help="end after so many")
    parser.add_argument("--clients", type=int, help="queries at once")
    parser.add_argument("--folder", type=Path, help="where data and logs go and stay; else they go")
    options = parser.parse_args()
    binary = Path(os.environ.get("FOREBAY_TEST_BINARY") or Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "fast/forebay")
    failed = 0
    for mode in options.mode or MODES:
        with tempfile.TemporaryDirectory(prefix="forebay-sql-") as temporary:
            folder = (options.folder or Path(temporary)).resolve() / mode
            began = time.monotonic()
            servers = Servers(binary, folder, mode, options.seed)
            clients = options.clients or {"plain": 2, "hot": 2, "cluster": 6, "killed": 6}[mode]
            runner = Runner(servers, clients, lambda line: print(line, flush=True))
            try:
                runner.run(options.seed, options.queries, options.failures)
            finally:
                servers.stop()
            killer = servers.killer
            kills = f", {killer.kills} kills, {killer.amid} of them amid a query" if killer else ""
            print(f"{mode}: {dict(runner.counts)}{kills}, {len(runner.failures)} failures, {time.monotonic() - began:.0f} s", flush=True)
            failed += len(runner.failures)
            if killer and not killer.amid:
                print("killed: nothing was killed amid a query, which this is for: ask more of them", flush=True)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
