"""/api/v1 of a cluster, asked by a client that is generated from its description, and held against that by schemathesis, with a token of
each right: `python testing/api [ARGUMENTS OF st run]`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import client
from rights import TOKENS, Token

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
# How long the cluster may take until it serves.
_WITHIN = 120
# How those are asked for whom most is refused; arguments of the command line come after it.
_SHORTER = ["--phases", "examples,fuzzing", "--max-examples", "15"]


def main() -> int:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or _ROOT / "target")
    binary = Path(os.environ.get("FOREBAY_TEST_BINARY") or target / "fast/forebay").resolve()
    # All that is asked is on this machine.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"
    assert binary.exists(), f"{binary}: build it with cargo build --profile fast -p forebay, or name it in FOREBAY_TEST_BINARY"
    with tempfile.TemporaryDirectory(prefix="forebay-api-") as home:
        cluster = Cluster(binary, Path(home))
        try:
            cluster.fill()
            everything, *others = [(token, cluster.token(token)) for token in TOKENS]
            client.check(cluster.url, everything[1], Path(home))
            found = cluster.held_against_its_description(*everything, sys.argv[1:])
            for token, text in others:
                before = cluster.records()
                found |= cluster.held_against_its_description(token, text, [*_SHORTER, *sys.argv[1:]])
                assert token.changes() or cluster.records() == before, f"a token that is {token.name} has changed records"
            return found
        finally:
            cluster.close()


class Cluster:
    """A worker, a scheduler and an executor, a mount, a dataset of shards in it, and statements of SQL."""

    def __init__(self, binary: Path, home: Path) -> None:
        self._binary, self._home = binary, home
        self._coordinator, self._http = f"127.0.0.1:{_free_port()}", f"127.0.0.1:{_free_port()}"
        flags = ["--flight", "127.0.0.1:0", "--s3", "off", "--dram", "128MiB", "--disk", "128MiB", "--cluster", "1"]
        flags += [word for flag in ("--worker-listen", "--scheduler-listen", "--executor-listen") for word in (flag, "127.0.0.1:0")]
        command = [str(binary), "up", "--coordinator-listen", self._coordinator, "--http", self._http, *flags]
        with (home / "log").open("w") as log:
            self._up = subprocess.Popen(command, env=self._environment(), cwd=home, stdout=log, stderr=log)
        self.url = f"http://{self._http}"
        end = time.monotonic() + _WITHIN
        while not self._is_ready():
            if self._up.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the cluster does not start:\n{(home / 'log').read_text()}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return answer.read() == b"ready\n"
        except OSError:
            return False

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOREBAY_", "AWS_", "XDG_CONFIG_HOME"))}
        return {**kept, "HOME": str(self._home)}

    def _run(self, *arguments: str) -> str:
        command = [str(self._binary), "--coordinator", self._coordinator, *arguments]
        return subprocess.run(command, env=self._environment(), cwd=self._home, check=True, stdout=subprocess.PIPE, text=True).stdout

    def fill(self) -> None:
        """Has something to ask for."""
        lake = self._home / "lake"
        lake.mkdir()
        rows = ({"id": row, "name": f"clerk{row % 7}", "note": f"line {row} of spring"} for row in range(1000))
        (lake / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        self._run("mount", "add", "lake", f"file://{lake}")
        (self._home / "other").mkdir()
        self._run("mount", "add", "other", f"file://{self._home}/other")
        self._run("shard", "create", "/lake/rows.shards", "--from", "/lake/rows.jsonl", "--key", "id", "--shards", "2")

    def token(self, token: Token) -> str:
        return json.loads(self._run("token", "add", token.name, *token.flags, "--json"))["token"]

    def records(self) -> str:
        """All of the dataset's."""
        return "\n".join(sorted(self._run("shard", "scan", "/lake/rows.shards", "--columns", "*", "--json").splitlines()))

    def held_against_its_description(self, token: Token, text: str, arguments: list[str]) -> int:
        """What schemathesis says of it when it asks with a token: 0 where it finds nothing."""
        print(f"with a token that is {token.name}", flush=True)
        command = [str(Path(sys.executable).parent / "st"), "--config-file", str(_HERE / "schemathesis.toml"), "run", *arguments]
        environment = {**self._environment(), "FOREBAY_TOKEN": text, "FOREBAY_TOKEN_IS": token.text()}
        environment |= {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(_HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        asked = subprocess.run([*command, f"{self.url}/api/v1/openapi.json"], env=environment, cwd=self._home)
        assert self._up.poll() is None, f"the cluster has ended:\n{(self._home / 'log').read_text()}"
        return asked.returncode

    def close(self) -> None:
        self._up.terminate()
        try:
            self._up.wait(60)
        except subprocess.TimeoutExpired:
            self._up.kill()
            self._up.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
