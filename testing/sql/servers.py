"""The built binary in the ways that its users run it, and what kills parts of it."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
from adbc_driver_flightsql import DatabaseOptions

MODES = ("plain", "hot", "cluster", "killed")
# Between two kills, and between a kill and the start of another process in its place.
KILL_EVERY, AWAY = 3.0, 1.0
# A query that takes longer hangs.
ANSWER_SECS = "60"


class Servers:
    """`forebay up` as a mode has it, with the folders of the mounts `one` and `two`."""

    def __init__(self, binary: Path, folder: Path, mode: str, seed: int) -> None:
        assert binary.exists(), f"{binary}: build it with cargo build --profile fast -p forebay, or name it in FOREBAY_TEST_BINARY"
        self.binary, self.folder, self.mode = binary, folder, mode
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("FOREBAY_")} | {"HOME": str(folder)}
        # The tables are small: some partitions go together, and not all of them.
        self.environment |= {"FOREBAY_DISTRIBUTE_FROM": "0B", "FOREBAY_TASK_BYTES": "8KiB"}
        self.roots = {name: folder / name for name in ("one", "two")}
        for root in self.roots.values():
            root.mkdir(parents=True)
        flags = {"plain": [], "hot": [], "cluster": ["--cluster", "3"], "killed": ["--cluster", "1"]}[mode]
        if flags:
            flags += ["--scheduler-listen=127.0.0.1:0", "--executor-listen=127.0.0.1:0", "--slots=2"]
        ports = [f"--{name}=127.0.0.1:0" for name in ("coordinator-listen", "worker-listen", "http", "flight")]
        self.up = self._start("up", ["up", *ports, "--s3=off", "--dram=128MiB", "--disk=0", *flags], told=True)
        self.told: dict[str, str] = {}
        assert self.up.stdout
        for line in self.up.stdout:
            words = line.split()
            if len(words) == 2:
                self.told[words[0]] = words[1]
            if not words:
                break
        assert "flight-sql" in self.told, f"{self.told}: see {folder / 'up.log'}"
        self.secret = (folder / "up" / "owner.secret").read_text().strip()
        for name, root in self.roots.items():
            self.command("mount", "add", name, str(root), "--validate", "ttl:5s", *(["--hot-form", "table"] if mode == "hot" else []))
        # Queries that wait for their rows now.
        self.asking = 0
        self.killer = Killer(self, seed) if mode == "killed" else None

    def _start(self, name: str, arguments: list[str], told: bool = False) -> subprocess.Popen[str]:
        with open(self.folder / f"{name}.log", "ab") as log:
            command = [str(self.binary), *arguments, "--data-dir", name]
            out: Any = subprocess.PIPE if told else log
            return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=out, stderr=log, text=True)

    def role(self, role: str, name: str) -> subprocess.Popen[str]:
        """A process of its own beside `up`."""
        more = {"worker": ["--worker-listen=127.0.0.1:0", "--dram=64MiB", "--disk=0"], "executor": ["--executor-listen=127.0.0.1:0", "--slots=2"]}
        return self._start(name, [role, "--coordinator", self.told["coordinator"], "--http=off", *more[role]])

    def command(self, *arguments: str) -> str:
        command = [str(self.binary), *arguments, "--coordinator", self.told["coordinator"]]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def connect(self) -> flight_sql.Connection:
        options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {self.secret}"}
        limits = {f"adbc.flight.sql.rpc.timeout_seconds.{call}": ANSWER_SECS for call in ("query", "fetch")}
        return flight_sql.connect(f"grpc://{self.told['flight-sql']}", db_kwargs=options, conn_kwargs=limits)

    def is_up(self) -> bool:
        return self.up.poll() is None

    def stop(self) -> None:
        """Ends everything. What `up` says of its own end counts."""
        if self.killer:
            self.killer.stop()
        self.up.terminate()
        try:
            code = self.up.wait(60)
        except subprocess.TimeoutExpired:
            self.up.kill()
            self.up.wait()
            raise
        assert code == 0, f"`forebay up` ended with {code}: see {self.folder / 'up.log'}"


class Killer:
    """Two workers and two executors in processes of their own, one of which is killed every few seconds, and started again."""

    def __init__(self, servers: Servers, seed: int) -> None:
        self.servers, self.rng = servers, random.Random(f"kills {seed}")
        # Kills, and those of them amid a query.
        self.kills = self.amid = 0
        self.processes = {name: servers.role(name.rstrip("12"), name) for name in ("worker1", "worker2", "executor1", "executor2")}
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.ending.wait(KILL_EVERY * self.rng.uniform(0.5, 1.5)):
            name = self.rng.choice(sorted(self.processes))
            self.processes[name].kill()
            self.processes[name].wait()
            self.kills += 1
            self.amid += self.servers.asking > 0
            if self.ending.wait(AWAY):
                return
            self.processes[name] = self.servers.role(name.rstrip("12"), name)

    def stop(self) -> None:
        self.ending.set()
        self.thread.join()
        for process in self.processes.values():
            process.kill()
            process.wait()
