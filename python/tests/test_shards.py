"""Datasets of shards."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import itertools
import json
import math
import os
import subprocess
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import forebay

BINARY = Path(os.environ.get("FOREBAY_TEST_BINARY") or Path(__file__).parents[2] / "target/fast/forebay")

ROWS = [
    {"id": n - 50, "name": f"clerk{n % 7}", "note": f"line {n} of {'spring' if n % 2 else 'autumn'}", "raw": n * 0.5} for n in range(300)
]


def command(server, *arguments, given=None):
    """What `forebay shard` says."""
    assert BINARY.exists(), f"{BINARY}: build it with cargo build --profile fast -p forebay, or name it in FOREBAY_TEST_BINARY"
    line = [str(BINARY), "--coordinator", server, "shard", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, input=given)


def create(server, lake, path):
    (lake / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    made = command(server, "create", path, "--from", "/lake/rows.jsonl", "--key", "id", "--shards", "3", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["records"] == len(ROWS)


@pytest.fixture(scope="module")
def shards(server, lake, fb):
    """A dataset that the command makes."""
    create(server, lake, "/lake/rows.shards")
    return fb.shards["/lake/rows.shards"]


@pytest.fixture
def changed(server, lake, fb):
    """One that tests change."""
    create(server, lake, "/lake/changed.shards")
    yield fb.shards["/lake/changed.shards"]
    fb.delete([entry.path for entry in fb.ls("/lake/changed.shards/", recursive=True)])


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
    either = {"or": [{"attr": "name", "in": ["clerk3", "clerk5"]}, {"not": {"attr": "note", "suffix": "SPRING", "ignore_case": True}}]}
    right = [row["id"] for row in ROWS if row["name"] in ("clerk3", "clerk5") or not row["note"].endswith("spring")]
    assert shards.search(either) == right == shards.search("name in (clerk3, clerk5) or not note i$= SPRING")
    assert len(shards) == shards.count() == len(ROWS)


def test_all_records(shards, monkeypatch):
    assert list(shards.scan()) == ROWS
    monkeypatch.setattr("forebay.shards._PAGE", 7)
    assert list(shards.scan()) == ROWS, "page by page"
    assert list(shards.scan(["name"], after=200)) == [{"name": row["name"]} for row in ROWS if row["id"] > 200]
    assert list(shards.scan(after=249)) == []


def test_records_as_columns(shards):
    ids = [12, -50, 10_000, 12]
    table = shards.get_many_arrow(ids).to_arrow()
    assert table.schema.field("id").type == pyarrow.int64() and table.schema.field("raw").type == pyarrow.float64()
    assert table.to_pylist() == [shards[key] for key in (12, -50, 12)], "in the order of the keys, those that are there"
    assert shards.get_many_arrow([10_000]).to_arrow().num_rows == 0
    note = "note *= spring and not name = clerk3"
    right = [row for row in ROWS if "spring" in row["note"] and row["name"] != "clerk3"]
    assert shards.search_arrow(note).to_arrow().to_pylist() == right
    assert shards.search_arrow(note, after=right[9]["id"], limit=5).to_arrow().to_pylist() == right[10:15]
    assert shards.search_arrow({"attr": "name", "eq": "nobody"}).to_arrow().num_rows == 0
    few = shards.search_arrow(note, ["raw", "id"], limit=3)
    assert few.columns == ["raw", "id"]
    assert few.to_arrow().to_pylist() == [{"raw": row["raw"], "id": row["id"]} for row in right[:3]]
    assert shards.scan_arrow(["id"]).to_arrow()["id"].to_pylist() == [row["id"] for row in ROWS]
    assert pyarrow.table(shards.scan_arrow()).to_pylist() == ROWS, "without a copy"
    rows = shards.scan_arrow(after=200).reader()
    assert [row for batch in rows for row in batch.to_pylist()] == [row for row in ROWS if row["id"] > 200]
    once = shards.scan_arrow()
    assert once.plan is None and once.progress is None and sum(batch.num_rows for batch in once) == len(ROWS)
    with pytest.raises(forebay.Closed, match="given out"):
        once.to_arrow()


def test_what_is_wrong_with_columns_says_so(shards):
    with pytest.raises(forebay.Invalid, match="nothing"):
        shards.search_arrow("nothing = 1")
    with pytest.raises(forebay.Invalid, match="nothing"):
        shards.scan_arrow(["nothing"])
    with pytest.raises(forebay.Invalid):
        shards.get_many_arrow(["text"])
    with pytest.raises(TypeError, match="keys is a list"):
        shards.get_many_arrow("text")
    with pytest.raises(TypeError, match="columns is a list"):
        shards.scan_arrow("name")


def test_keys_as_of_a_mapping(shards, monkeypatch):
    ids = [row["id"] for row in ROWS]
    assert list(shards) == ids == sorted(ids)
    monkeypatch.setattr("forebay.shards._PAGE", 7)
    assert list(shards) == ids, "page by page"
    assert 7 in shards and -50 in shards and 10_000 not in shards
    assert all(shards[key]["id"] == key for key in itertools.islice(shards, 3))
    with pytest.raises(forebay.Invalid):
        assert "text" in shards


def test_what_is_wrong_says_so(shards, fb):
    with pytest.raises(forebay.Invalid, match="nothing"):
        shards.search("nothing = 1")
    with pytest.raises(forebay.Invalid):
        shards.get("text")
    with pytest.raises(TypeError, match="no value of a shard"):
        shards.get(object())
    with pytest.raises(TypeError, match="keys is a list"):
        shards.get_many("text")
    with pytest.raises(TypeError, match="columns is a list"):
        shards.get(1, "name")
    with pytest.raises(forebay.NotFound, match="forebay shard create"):
        fb.shards["/lake/none.shards"]


def test_the_status_names_the_replicas(shards):
    status = shards.status()
    assert [shard["shard"] for shard in status] == [0, 1, 2]
    assert sum(shard["records"] for shard in status) == len(ROWS)
    assert all(shard["replicas"][0]["bytes"] > 0 for shard in status)


def row(key, name="new"):
    return {"id": key, "name": name, "note": f"changed {key}", "raw": None}


def test_records_are_changed_from_python(changed):
    changed.put(row(7))
    assert changed[7] == row(7)
    assert changed.search("name = new") == [7]
    changed.delete(-50)
    assert changed.get(-50) is None and len(changed) == len(ROWS) - 1
    changed.put_many(row(key) for key in range(1000, 1100))
    assert changed.count("name = new") == 101
    with pytest.raises(forebay.Conflict):
        changed.put(row(7, "late"), if_absent=True)
    record, version = changed.get_versioned(7)
    assert record == row(7)
    assert changed.put(row(7, "next"), if_version=version) > version
    with pytest.raises(forebay.Conflict):
        changed.delete(7, if_version=version)
    assert changed.get_versioned(12345) == (None, 0)
    with pytest.raises(forebay.Invalid, match="nothing"):
        changed.put({"id": 1, "nothing": 2})


def test_records_are_changed_by_the_command(server, changed):
    path = changed.path
    put = command(server, "put", path, given="".join(json.dumps(row(key)) + "\n" for key in range(500, 503)))
    assert put.returncode == 0, put.stderr
    assert command(server, "delete", path, "500", "-49").returncode == 0
    assert [changed.get(key) for key in (500, 501, -49)] == [None, row(501), None]
    late = command(server, "put", path, json.dumps(row(501)), "--if-absent")
    assert late.returncode != 0 and "there is a record already" in late.stderr
    asked = command(server, "batch", path, given='{"get": 501, "versioned": true}\n{"put": {"id": 1, "name": "b"}}\n{"get": 1}\n')
    versioned, true, there = [json.loads(line) for line in asked.stdout.splitlines()]
    assert versioned["record"] == row(501) and true is True and there["name"] == "b"
    fits = command(server, "delete", path, "501", "--if-version", str(versioned["version"]))
    assert fits.returncode == 0, fits.stderr
    assert changed.get(501) is None


def test_values_have_the_types_of_their_columns(server, lake, fb):
    price = pyarrow.array([decimal.Decimal("1.10"), decimal.Decimal("12345678901234567.89")], pyarrow.decimal128(19, 2))
    at = pyarrow.array([datetime.datetime(2020, 1, 2, 3), None], pyarrow.timestamp("us", "UTC"))
    columns = {"k": [b"a", b"\xff"], "raw": [b"text", b"\x00\xfe"], "weight": [math.nan, 1.5], "price": price, "at": at}
    pyarrow.parquet.write_table(pyarrow.table({**columns, "day": [datetime.date(2020, 1, 2), None]}), lake / "typed.parquet")
    made = command(server, "create", "/lake/typed.shards", "--from", "/lake/typed.parquet", "--key", "k", "--shards", "1")
    assert made.returncode == 0, made.stderr
    typed = fb.shards["/lake/typed.shards"]
    assert repr(typed) == "<forebay.Shards /lake/typed.shards>"
    assert list(typed) == [b"a", b"\xff"], "bytes are bytes, whether or not they are text as well"
    assert typed[b"a"]["price"] == price[0].as_py() and typed[b"\xff"]["price"] == price[1].as_py(), "whether or not a float has all digits"
    whole = typed.scan_arrow(["k", "raw", "price", "day", "at"]).to_arrow()
    assert whole["k"].to_pylist() == [b"a", b"\xff"] and whole["raw"].to_pylist() == [b"text", b"\x00\xfe"]
    assert whole["price"].to_pylist() == price.to_pylist() and whole["at"].to_pylist() == at.to_pylist()
    assert whole["day"].to_pylist() == [datetime.date(2020, 1, 2), None]
    assert typed[b"a"]["raw"] == b"text" and math.isnan(typed[b"a"]["weight"]) and typed[b"\xff"]["raw"] == b"\x00\xfe"
    east = datetime.timezone(datetime.timedelta(hours=2))
    when = datetime.datetime(2021, 3, 4, 12, tzinfo=east)
    record = {"k": b"b", "weight": math.inf, "price": decimal.Decimal("2.5"), "day": datetime.date(2021, 3, 4), "at": when}
    typed.put(record)
    kept = {"k": b"b", "raw": None, "weight": math.inf, "price": decimal.Decimal("2.5"), "day": "2021-03-04", "at": "2021-03-04T10:00:00Z"}
    assert typed[b"b"] == kept
    again, version = typed.get_versioned(b"a")
    typed.put({**again, "raw": b"other"}, if_version=version)
    assert typed[b"a"]["raw"] == b"other" and math.isnan(typed[b"a"]["weight"])
    with pytest.raises(forebay.Invalid, match="2 digits after the point"):
        typed.put({"k": b"c", "price": decimal.Decimal("1.234")})
    fb.delete([entry.path for entry in fb.ls("/lake/typed.shards/", recursive=True)])


def test_awaited(shards, fb):
    async def ask():
        there = await fb.aio.shards.open("/lake/rows.shards")
        assert await there.get(-50) == ROWS[0]
        assert await asyncio.gather(*(there.count() for _ in range(5))) == [len(ROWS)] * 5
        assert [record async for record in there.scan()] == ROWS
        assert [key async for key in there] == [row["id"] for row in ROWS]
        assert (await there.scan_arrow().to_arrow()).to_pylist() == ROWS
        assert [row async for batch in there.search_arrow("name = clerk3") for row in batch.to_pylist()] == [
            row for row in ROWS if row["name"] == "clerk3"
        ]
        assert (await there.get_many_arrow([7, 10_000], ["name"]).to_arrow()).to_pylist() == [{"name": (await there.get(7))["name"]}]
        assert await there.search("note *= 'line 29'") == [row["id"] for row in ROWS if "line 29" in row["note"]]

    asyncio.run(ask())


def test_changes_awaited(changed, fb):
    async def change():
        there = await fb.aio.shards.open(changed.path)
        versions = await asyncio.gather(*(there.put(row(key)) for key in range(20)))
        assert all(versions)
        assert await there.search("name = new") == list(range(20))
        assert await there.delete(3) and await there.get_versioned(4) == (row(4), (await there.get_versioned(4))[1])

    asyncio.run(change())


def test_replicas_are_pinned_and_frozen(server, changed, fb):
    replicas = sum(len(shard["replicas"]) for shard in changed.status())
    assert changed.orders == {}
    assert changed.pin(size=0.75) == (replicas, replicas)
    assert changed.orders == {"pin": {"size": 0.75}}, "the one that is open says so"
    assert all(replica["least"] == 0.75 for shard in changed.status() for replica in shard["replicas"])
    changed.freeze()
    assert fb.shards[changed.path].orders == {"pin": {"size": 0.75}, "frozen": True}
    assert all(replica["is_frozen"] for shard in changed.status() for replica in shard["replicas"])
    said = command(server, "thaw", changed.path, "--json")
    assert json.loads(said.stdout)["orders"] == {"pin": {"size": 0.75}}, said.stderr
    changed.unpin()
    assert changed.orders == {}
    changed.acknowledge("two-workers")
    assert changed.orders == {"ack": "two-workers"} and changed.status()[0]["ack"] == "two-workers"
    with pytest.raises(forebay.Invalid, match="two-workers"):
        changed.acknowledge("one-worker")
    assert changed.forgo() == [], "nothing is lost"
    changed.acknowledge("storage")
    assert changed.orders == {}
    for size in (0, -1, 17, float("nan")):
        with pytest.raises(forebay.Invalid, match="above 0"):
            changed.pin(size=size)
    changed.put(row(7))
    assert changed[7] == row(7), "it is read and changed as before"


def test_orders_awaited(changed, fb):
    async def order():
        there = await fb.aio.shards.open(changed.path)
        here, replicas = await there.pin()
        assert here == replicas > 0 and there.orders == {"pin": {}}
        await there.freeze()
        assert there.orders == {"pin": {}, "frozen": True} == fb.shards[changed.path].orders
        await there.unpin()
        await there.thaw()
        await there.acknowledge("two-workers")
        assert there.orders == {"ack": "two-workers"} and await there.forgo() == []
        await there.acknowledge("storage")
        assert there.orders == {} and len(await there.status()) == 3

    asyncio.run(order())


@pytest.fixture
def followed(server, lake, fb):
    """One that follows a folder of objects."""
    (lake / "followed").mkdir()
    (lake / "followed" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    path = "/lake/followed.shards"
    made = command(server, "create", path, "--from", "/lake/followed/", "--key", "id", "--shards", "2", "--refresh", "1h", "--json")
    assert made.returncode == 0, made.stderr
    yield fb.shards[path]
    fb.delete([entry.path for folder in (path + "/", "/lake/followed/") for entry in fb.ls(folder, recursive=True)])


def test_a_dataset_is_refreshed(lake, fb, followed):
    assert followed.follows()["following"] == ["/lake/followed/"] and followed.follows()["objects"] == 1
    come = {**ROWS[1], "id": 9_001}
    (lake / "followed" / "b.jsonl").write_text(json.dumps(come) + "\n")
    fb.refresh("/lake/followed/")
    assert followed.refresh() == {"objects": 2, "added": 1, "replaced": 0, "gone": 0, "changes": 1, "errors": []}
    assert followed[9_001] == come
    followed.refresh_every("5m")
    assert followed.follows()["every_ms"] == 300_000 and followed.follows()["refresh"]["objects"] == 2
    followed.refresh_every(None)
    assert followed.follows()["every_ms"] == 0
    with pytest.raises(forebay.Invalid):
        followed.refresh_every("soon")


def test_a_dataset_is_given_other_shards(fb, changed):
    other = fb.shards[changed.path]
    assert changed.follows() is None
    with pytest.raises(forebay.Invalid, match="follows no objects"):
        changed.refresh()
    told = changed.reshard(shards=5)
    assert (told["before"], told["shards"]) == (3, 5)
    assert len(changed.status()) == 5
    assert other.get_many([one["id"] for one in ROWS]) == ROWS, "who had it open is led on"
    assert changed.reshard(size="1GiB")["shards"] == 1
    for wrong in ({}, {"shards": 2, "size": "1MiB"}, {"split": 1, "merge": 1}):
        with pytest.raises(ValueError, match="one of shards="):
            changed.reshard(**wrong)
    with pytest.raises(forebay.Invalid):
        changed.reshard(shards=0)
    for one in ({"split": 0}, {"merge": 0}):
        with pytest.raises(forebay.Invalid, match="spread by a hash"):
            changed.reshard(**one)

    async def awaited():
        there = await fb.aio.shards.open(changed.path)
        assert (await there.reshard(shards=2))["before"] == 1
        assert await there.count() == len(ROWS) and await there.follows() is None

    asyncio.run(awaited())
