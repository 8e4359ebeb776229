"""Clients that ask queries, each time in a process of its own, and what they were told."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass

import answers
import known
from cluster import Cluster
from data import Data

# A query hangs that takes longer than this, or than so many times its undisturbed time.
HANGS_SECS, HANGS_TIMES = 120.0, 10.0


@dataclass
class Told:
    """One query's end."""

    number: int
    secs: float
    verdict: str
    detail: str = ""


def ask(cluster: Cluster, data: Data, number: int, limit: float, *flags: str) -> Told:
    """Asks one query and judges what came: `right`, `wrong`, `failed` or `hung`."""
    began = time.monotonic()
    try:
        ran = cluster.command("sql", "--json", *flags, data.queries[number], timeout=limit)
    except subprocess.TimeoutExpired:
        return Told(number, time.monotonic() - began, "hung", f"no answer within {limit:.0f} s")
    secs = time.monotonic() - began
    if ran.returncode != 0:
        return Told(number, secs, "failed", ran.stderr.strip()[-600:])
    differs = answers.differ(data.answers[number], answers.of_json_lines(ran.stdout))
    if differs and number in known.OTHER_ANSWERS:
        return Told(number, secs, "known")
    return Told(number, secs, "wrong" if differs else "right", differs)


class Clients:
    """Several at once, each with the queries in an order of its own, again and again until a time is over."""

    def __init__(self, cluster: Cluster, data: Data, many: int, seed: int, calm: dict[int, float] | None = None) -> None:
        self.cluster, self.data, self.calm = cluster, data, calm or {}
        self.told: list[Told] = []
        self.asking: Counter[int] = Counter()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(f"{seed} {client}",), daemon=True) for client in range(many)]

    def run(self, secs: float) -> None:
        """Starts them; [`join`] waits for their end, which is that of the query each has then."""
        self.until = time.monotonic() + secs
        for thread in self.threads:
            thread.start()

    def join(self) -> list[Told]:
        for thread in self.threads:
            thread.join()
        return self.told

    def _run(self, seed: str) -> None:
        rng = random.Random(seed)
        while True:
            order = sorted(self.data.queries)
            rng.shuffle(order)
            for number in order:
                if time.monotonic() >= self.until:
                    return
                limit = max(HANGS_SECS, HANGS_TIMES * self.calm.get(number, 0.0))
                with self.lock:
                    self.asking[number] += 1
                told = ask(self.cluster, self.data, number, limit)
                with self.lock:
                    self.asking[number] -= 1
                    self.told.append(told)
                if told.verdict not in ("right", "known"):
                    print(f"q{number} {told.verdict} after {told.secs:.1f} s: {told.detail}", flush=True)
