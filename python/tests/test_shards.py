"""Datasets of shards."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

import forebay

BINARY = Path(os.environ.get("FOREBAY_TEST_BINARY") or Path(__file__).parents[2] / "target/fast/forebay")

ROWS = [
    {"id": n - 50, "name": f"clerk{n % 7}", "note": f"line {n} of {'spring' if n % 2 else 'autumn'}", "raw": n * 0.5} for n in range(300)
]


@pytest.fixture(scope="module")
def shards(server, lake, fb):
    """A dataset that the command makes."""
    assert BINARY.exists(), f"{BINARY}: build it with cargo build --profile fast -p forebay, or name it in FOREBAY_TEST_BINARY"
    (lake / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    command = [str(BINARY), "--coordinator", server, "shard", "create", "/lake/rows.shards", "--from", "/lake/rows.jsonl", "--key", "id"]
    made = subprocess.run([*command, "--shards", "3", "--json"], capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["records"] == len(ROWS)
    return fb.shards["/lake/rows.shards"]


def test_records_by_key(shards):
    assert shards.columns[0] == "id" and set(shards.columns) == set(ROWS[0])
    for row in ROWS[::37]:
        assert shards.get(row["id"]) == row == shards[row["id"]]
    assert shards.get(10_000) is None
    with pytest.raises(KeyError):
        shards[10_000]
    assert shards.get_many([249, -50, 999], ["note"]) == [{"note": "line 299 of spring"}, {"note": "line 0 of autumn"}, None]
    assert shards.get_many([]) == []


def test_keys_by_condition(shards):
    wanted = [row["id"] for row in ROWS if row["name"] == "clerk3"]
    assert shards.search("name = clerk3") == wanted == shards.search({"attr": "name", "eq": "clerk3"})
    assert shards.search("name = clerk3", limit=4) == wanted[:4]
    assert shards.search("name = clerk3", after=wanted[3], limit=4) == wanted[4:8]
    both = {"and": [{"attr": "name", "eq": "clerk3"}, {"attr": "note", "contains": "spring"}]}
    assert shards.count(both) == sum(row["name"] == "clerk3" and "spring" in row["note"] for row in ROWS)
    assert len(shards) == shards.count() == len(ROWS)


def test_what_is_wrong_says_so(shards, fb):
    with pytest.raises(forebay.Invalid, match="nothing"):
        shards.search("nothing = 1")
    with pytest.raises(forebay.Invalid):
        shards.get("text")
    with pytest.raises(TypeError, match="no value of a shard"):
        shards.get(object())
    with pytest.raises(forebay.NotFound, match="forebay shard create"):
        fb.shards["/lake/none.shards"]


def test_the_status_names_the_replicas(shards):
    status = shards.status()
    assert [shard["shard"] for shard in status] == [0, 1, 2]
    assert sum(shard["records"] for shard in status) == len(ROWS)
    assert all(shard["replicas"][0]["bytes"] > 0 for shard in status)


def test_awaited(shards, fb):
    async def ask():
        there = await fb.aio.shards.open("/lake/rows.shards")
        assert await there.get(-50) == ROWS[0]
        assert await asyncio.gather(*(there.count() for _ in range(5))) == [len(ROWS)] * 5
        assert await there.search("note *= 'line 29'") == [row["id"] for row in ROWS if "line 29" in row["note"]]

    asyncio.run(ask())
