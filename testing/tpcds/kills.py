"""What is killed while clients ask, and when it comes back."""

from __future__ import annotations

import random
import threading
import time

from cluster import Cluster

# Between two kills, and between a kill and the start of another process in its place.
EVERY_SECS, AWAY_SECS = 30.0, 5.0


class Kills:
    """Every half a minute an executor, a worker, or both; twice the coordinator and the scheduler."""

    def __init__(self, cluster: Cluster, seed: int, secs: float) -> None:
        self.cluster, self.rng, self.secs = cluster, random.Random(f"kills {seed}"), secs
        self.kills, self.amid, self.restarts = 0, 0, 0
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.ending.set()
        self.thread.join()

    def _run(self) -> None:
        began, heads = time.monotonic(), [self.secs / 3, self.secs * 2 / 3]
        while not self.ending.wait(EVERY_SECS):
            names = self.rng.choice([["executor"], ["worker"], ["executor", "worker"]])
            victims = [self.rng.choice(self.cluster.executors if name == "executor" else self.cluster.workers) for name in names]
            if heads and time.monotonic() - began >= heads[0]:
                heads.pop(0)
                self.restarts += 1
                victims = ["coordinator", "scheduler"]
            running = any(job.get("tasks_running") for job in self.cluster.jobs())
            for name in victims:
                self.cluster.kill(name)
            self.kills += len(victims)
            self.amid += len(victims) if running else 0
            print(f"{time.monotonic() - began:.0f} s: killed {' and '.join(victims)}{'' if running else ', nothing ran'}", flush=True)
            self.ending.wait(AWAY_SECS)
            for name in victims:
                self.cluster.start(name)
