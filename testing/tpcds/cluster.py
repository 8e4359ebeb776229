"""A cluster of the built binary, each role a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

# How long a role may take until it listens.
START_SECS = 60.0


class Cluster:
    """A coordinator, a scheduler, workers and executors, and a mount `lake` of a folder."""

    def __init__(self, binary: Path, folder: Path, lake: Path, size: int, distribute_from: str) -> None:
        assert binary.exists(), f"{binary}: build it with cargo build --profile fast -p forebay, or name it in FOREBAY_TEST_BINARY"
        self.binary, self.folder = binary, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("FOREBAY_")} | {"HOME": str(folder), "FOREBAY_DISTRIBUTE_FROM": distribute_from}
        self.ports = {name: _free_port() for name in ("coordinator", "scheduler")}
        self.at = f"127.0.0.1:{self.ports['coordinator']}"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.workers = [f"worker{n}" for n in range(1, size + 1)]
        self.executors = [f"executor{n}" for n in range(1, size + 1)]
        for name in ("coordinator", "scheduler", *self.workers, *self.executors):
            self.start(name)
            self._until_up(name)
        mounted = self.command("mount", "add", "lake", str(lake), "--validate", "ttl:5s")
        assert mounted.returncode == 0, mounted.stderr

    def start(self, name: str) -> None:
        """Starts a role by its name, `worker2` say."""
        role = name.rstrip("0123456789")
        flags = {
            "coordinator": ["--coordinator-listen", self.at],
            "scheduler": ["--coordinator", self.at, "--scheduler-listen", f"127.0.0.1:{self.ports['scheduler']}"],
            "worker": ["--coordinator", self.at, "--worker-listen", "127.0.0.1:0", "--dram", "256MiB", "--disk", "0"],
            "executor": ["--coordinator", self.at, "--executor-listen", "127.0.0.1:0", "--slots", "2"],
        }[role]
        command = [str(self.binary), role, "--http", "off", "--data-dir", name, *flags]
        with open(self.folder / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log)

    def command(self, *arguments: str, timeout: float = START_SECS) -> subprocess.CompletedProcess[str]:
        command = [str(self.binary), *arguments, "--coordinator", self.at]
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=timeout)

    def _until_up(self, name: str) -> None:
        log, began = self.folder / f"{name}.log", time.monotonic()
        while " is up" not in log.read_text(errors="replace"):
            assert self.running[name].poll() is None, f"{name} ended: see {log}"
            assert time.monotonic() - began < START_SECS, f"{name} is not up after {START_SECS:.0f} s: see {log}"
            time.sleep(0.05)

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()
        for name, process in self.running.items():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                print(f"{name} did not end within 30 s of SIGTERM", flush=True)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
