"""A cluster of the built binary, with something to show."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKERS = 4


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what: str, holds: Callable[[], Any], within: float = 30) -> Any:
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            found = holds()
        except OSError:
            found = None
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {within:.0f} s: {what}")


class Cluster:
    """Four workers with an executor each, and a mount with a bound."""

    def __init__(self, binary: str, home: Path) -> None:
        self._binary, self._home = binary, home
        self._coordinator, self.http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        off = ["--flight", "127.0.0.1:0", "--s3", "off", "--window", "1s", "--cluster", str(WORKERS)]
        off += ["--dram", f"{64 * WORKERS}MiB", "--disk", f"{64 * WORKERS}MiB"]
        off += [word for flag in ("--worker-listen", "--scheduler-listen", "--executor-listen") for word in (flag, "127.0.0.1:0")]
        command = [binary, "up", "--coordinator-listen", self._coordinator, "--http", self.http, *off]
        with (home / "log").open("w") as log:
            self._up = subprocess.Popen(command, env=self._environment(), cwd=home, stdout=log, stderr=log)
        try:
            until("the cluster is up", self._is_ready, 120)
            self._fill()
        except BaseException:
            self.close()
            raise

    def _is_ready(self) -> bool:
        assert self._up.poll() is None, f"the cluster has ended:\n{(self._home / 'log').read_text()}"
        return urllib.request.urlopen(f"http://{self.http}/readyz", timeout=5).read() == b"ready\n"

    def _fill(self) -> None:
        home = self._home
        (home / "lake").mkdir()
        (home / "lake/a.csv").write_text("id,word\n" + "".join(f"{row},w{row % 7}\n" for row in range(20_000)))
        self.run("mount", "add", "lake", f"file://{home}/lake", "--bandwidth", "400Mbit")
        self.token = json.loads(self.run("token", "add", "console", "--read", "--json"))["token"]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOREBAY_", "AWS_", "XDG_"))}
        # Little data goes to the executors too, so that there are jobs.
        return {**kept, "HOME": str(self._home), "FOREBAY_DISTRIBUTE_FROM": "0B"}

    def run(self, *arguments: str) -> str:
        command = [self._binary, *arguments, "--coordinator", self._coordinator]
        ran = subprocess.run(command, env=self._environment(), cwd=self._home, capture_output=True, text=True)
        assert ran.returncode == 0, f"forebay {' '.join(arguments)}: {ran.stderr}"
        return ran.stdout

    def ask(self, path: str, method: str = "GET") -> Any:
        """What /api/v1 answers the token."""
        request = urllib.request.Request(f"http://{self.http}/api/v1/{path}", method=method, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def close(self) -> None:
        self._up.terminate()
        try:
            self._up.wait(30)
        except subprocess.TimeoutExpired:
            self._up.kill()
            self._up.wait()
