"""A cluster of the tests' own: coordinator and worker in another process, a folder mounted as ``/lake/``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import forebay

# No configuration of this machine, and no other cluster than the tests' own.
for _name in [name for name in os.environ if name.startswith("FOREBAY_") and not name.startswith(("FOREBAY_CACHE", "FOREBAY_TEST_"))]:
    del os.environ[_name]

_SERVER = """
import sys, forebay
fb = forebay.up(sys.argv[1], dram="256MiB", disk="256MiB")
print(fb.address, flush=True)
sys.stdin.read()
fb.close()
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory):
    """Address of a cluster in another process."""
    folder = tmp_path_factory.mktemp("server")
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(folder / "data")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    address = process.stdout.readline().strip()
    assert address, "the cluster does not start"
    yield address
    process.stdin.close()
    assert process.wait(30) == 0


@pytest.fixture(scope="session")
def lake(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is mounted as ``/lake/``."""
    folder = tmp_path_factory.mktemp("lake")
    with forebay.connect(server) as fb:
        fb.mounts.add("lake", folder, validate="always")
    return folder


@pytest.fixture(scope="session")
def fb(server: str, lake: Path):
    """A client of the cluster."""
    with forebay.connect(server) as client:
        yield client


def numbers(start: int, rows: int) -> pyarrow.Table:
    n = range(start, start + rows)
    return pyarrow.table({"n": list(n), "square": [i * i for i in n], "word": [f"word-{i % 7}" for i in n]})


@pytest.fixture(scope="session")
def sales(lake: Path) -> pyarrow.Table:
    """What ``/lake/sales/`` holds: three Parquet files."""
    (lake / "sales").mkdir()
    parts = [numbers(start, 1000) for start in (0, 1000, 2000)]
    for at, part in enumerate(parts):
        pyarrow.parquet.write_table(part, lake / "sales" / f"part-{at}.parquet")
    return pyarrow.concat_tables(parts)


@pytest.fixture
def address(server: str, lake: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cluster as the environment names it, for libraries that are given a URL and nothing else."""
    from forebay.filesystem import ForebayFileSystem

    monkeypatch.setenv("FOREBAY_COORDINATOR", server)
    ForebayFileSystem.clear_instance_cache()
    return server


def pytest_terminal_summary(terminalreporter) -> None:
    """One line in the form of the Rust tests, for whoever counts."""
    count = {name: len(terminalreporter.stats.get(name, [])) for name in ("passed", "failed", "error", "skipped")}
    failed = count["failed"] + count["error"]
    verdict = "FAILED" if failed else "ok"
    terminalreporter.write_line(f"test result: {verdict}. {count['passed']} passed; {failed} failed; {count['skipped']} ignored")
