"""Some random SQL against DuckDB in each way that users run the binary; `make test-sql` asks as much as one likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("mode", "queries"), [("plain", 249), ("hot", 249), ("cluster", 40), ("killed", 249)])
def test_random_sql_is_answered_as_duckdb_answers_it(mode, queries):
    command = [sys.executable, "-W", "ignore", str(ROOT / "testing/sql"), "--mode", mode, "--seed", "1", "--queries", str(queries)]
    binary = os.environ.get("FOREBAY_TEST_BINARY") or str(ROOT / "target/fast/forebay")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ, FOREBAY_TEST_BINARY=binary))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"'asked': {queries}" in done.stdout, done.stdout
