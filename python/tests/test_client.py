"""Bytes, names and tiers."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import time
from datetime import datetime, timezone

import pytest

import forebay
from forebay.place import Place, size_of


def test_a_read_gives_the_bytes_where_they_are(fb, lake):
    data = os.urandom(3 << 20)
    (lake / "x.bin").write_bytes(data)
    view = fb.read("/lake/x.bin")
    assert view.readonly and view == data
    assert fb.read("/lake/x.bin", 10, 100) == data[10:110]
    assert fb.read("/lake/x.bin", -5) == data[-5:]
    assert fb.read("/lake/x.bin", -10, 3) == data[-10:-7]
    assert fb.read("/lake/x.bin", len(data) - 2, 100) == data[-2:]
    assert fb.read("/lake/x.bin", length=0) == b""
    with pytest.raises(TypeError):
        view[0] = 1


def test_a_warm_read_is_in_place_and_outlives_its_client(server, lake):
    data = os.urandom(1 << 20)
    (lake / "kept.bin").write_bytes(data)
    with forebay.connect(server) as fb:
        fb.read("/lake/kept.bin")
        before = fb._connection.counters()
        views = [fb.read("/lake/kept.bin") for _ in range(3)]
        after = fb._connection.counters()
        assert after[0] - before[0] == 3 and after[2] == before[2], (before, after)
    assert all(view == data for view in views)


def test_put_stat_copy_delete(fb, lake):
    entry = fb.put("/lake/put/a b%.txt", b"hello")
    assert (lake / "put" / "a b%.txt").read_bytes() == b"hello"
    assert (entry.path, entry.size, entry.folder, entry.name) == ("/lake/put/a b%.txt", 5, False, "a b%.txt")
    assert abs((datetime.now(timezone.utc) - entry.modified).total_seconds()) < 60
    assert fb.stat("/lake/put/a b%.txt") == entry
    assert fb.stat("/lake/put").folder and fb.stat("/lake/").folder
    fb.put("/lake/put/b", memoryview(bytearray(b"world")))
    assert [entry.path for entry in fb.ls("/lake/put")] == ["/lake/put/a b%.txt", "/lake/put/b"]
    assert [entry.path for entry in fb.ls("/")] == ["/lake/"]
    with pytest.raises(forebay.AlreadyExists) as caught:
        fb.put("/lake/put/b", b"other", if_absent=True)
    assert isinstance(caught.value, FileExistsError) and caught.value.path == "/lake/put/b"
    fb.copy("/lake/put/b", "/lake/put/deep/c")
    assert [entry.path for entry in fb.ls("/lake/put")][-1] == "/lake/put/deep/"
    assert [entry.path for entry in fb.ls("/lake/put", recursive=True)][-1] == "/lake/put/deep/c"
    assert fb.read("/lake/put/deep/c") == b"world"
    fb.delete(["/lake/put/a b%.txt", "/lake/put/b", "/lake/put/deep/c", "/lake/put/never"])
    assert not fb.exists("/lake/put/b")


def test_tiers(fb, lake):
    (lake / "tiers").mkdir()
    for name in "ab":
        (lake / "tiers" / name).write_bytes(os.urandom(1 << 20))
    assert fb.usage("/lake/tiers") == forebay.Usage(2, 2 << 20, 0, 0, 0)
    loaded = fb.load("/lake/tiers/")
    assert (loaded.objects, loaded.bytes, loaded.fetched_bytes) == (2, 2 << 20, 2 << 20)
    assert fb.usage("/lake/tiers").cached_bytes == 2 << 20
    fb.pin("/lake/tiers")
    assert fb.pins == ["/lake/tiers/"]
    fb.unpin("/lake/tiers")
    assert fb.pins == []
    assert fb.free("/lake/tiers") >= 2 << 20
    assert fb.usage("/lake/tiers").cached_bytes == 0
    fb.refresh("/lake/tiers")
    status = fb.status()
    assert [mount["name"] for mount in status["mounts"]] == ["lake"]
    assert status["workers"][0]["dram"]["capacity_bytes"] == 256 << 20


def test_a_load_of_columns_and_rows(fb, lake):
    table = "select value as id, md5(cast(value as varchar)) as hash from generate_series(1, 100000) as t(value)"
    fb.script(f"copy ({table}) to '/lake/part/a.parquet'")
    fb.free("/lake/part")
    assert fb.load("/lake/part", where="id < 0") == forebay.Loaded(0, 0, 0)
    column = fb.load("/lake/part", columns=["id"], where="id > 10")
    assert column.objects == 1 and 0 < column.bytes * 2 < (lake / "part" / "a.parquet").stat().st_size
    assert fb.load("/lake/part", columns=["id"], where="id > 10").fetched_bytes == 0
    with pytest.raises(forebay.Error):
        fb.load("/lake/part", columns=["nosuch"])


def test_mounts(fb, tmp_path):
    mount = fb.mounts.add("other", tmp_path, read_only=True, bandwidth="1Gbit", discover="30s")
    assert (mount.name, mount.url) == ("other", tmp_path.as_uri())
    assert (mount.options["read_only"], mount.options["bandwidth"], mount.options["discover"]) == (True, "1Gbit", "30s")
    try:
        assert set(fb.mounts) == {"lake", "other"} and fb.mounts["other"] == mount
        with pytest.raises(forebay.Denied) as caught:
            fb.put("/other/x", b"")
        assert isinstance(caught.value, PermissionError) and caught.value.path == "/other/x"
        changed = fb.mounts.set("other", read_only=False, bandwidth=None, hot_form="table", eager=True, replicas=1)
        assert (changed.options["bandwidth"], changed.options["discover"]) == (None, "30s")
        assert (changed.options["hot_form"], changed.options["eager"], changed.options["replicas"]) == ("table", True, 1)
        for _ in range(100):
            # Workers hear of it within a second, on a machine that has time for them.
            with contextlib.suppress(forebay.Denied):
                fb.put("/other/x", b"1")
                break
            time.sleep(0.1)
        assert (tmp_path / "x").read_bytes() == b"1"
        with pytest.raises(TypeError, match="no such option of a mount: bandwith"):
            fb.mounts.set("other", bandwith="1Gbit")
    finally:
        fb.mounts.remove("other")
    with pytest.raises(KeyError):
        fb.mounts["other"]
    with pytest.raises(FileNotFoundError):
        fb.mounts.add("nowhere", tmp_path / "missing")


@pytest.mark.parametrize("call", ["read", "stat", "ls", "open", "load", "pin", "free", "usage"])
def test_what_is_not_there_is_named(fb, call):
    with pytest.raises(forebay.NotFound) as caught:
        getattr(fb, call)("/lake/not/there")
    error = caught.value
    assert isinstance(error, FileNotFoundError) and isinstance(error, forebay.Error)
    assert error.path == "/lake/not/there" and "/lake/not/there" in str(error) and error.kind == "not found"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.path) == (type(error), str(error), error.path)


def test_other_errors(fb, server):
    with pytest.raises(forebay.Invalid, match="is not a path"):
        fb.read("lake/x")
    with pytest.raises(ValueError):
        fb.sql("selec 1")
    with pytest.raises(forebay.NotFound) as caught:
        fb.sql("select * from '/lake/not/there.parquet'").to_arrow()
    assert caught.value.path == "/lake/not/there.parquet"
    with pytest.raises(forebay.Retry) as caught:
        forebay.connect("127.0.0.1:1")
    assert isinstance(caught.value, ConnectionError)


def test_many_threads(fb, lake):
    data = [os.urandom(100_000) for _ in range(8)]
    for at, each in enumerate(data):
        (lake / f"thread-{at}").write_bytes(each)
    wrong = []

    def read(at):
        for _ in range(20):
            if fb.read(f"/lake/thread-{at}") != data[at]:
                wrong.append(at)

    threads = [threading.Thread(target=read, args=(at,)) for at in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_a_client_goes_through_pickle_by_its_address(server, fb, lake):
    (lake / "pickled").write_bytes(b"yes")
    client = forebay.Client(Place(server, in_place=False, token="a secret of the tests"))
    again = pickle.loads(pickle.dumps(client))
    assert (again.address, again._place) == (server, client._place)
    assert pickle.loads(pickle.dumps(fb)).read("/lake/pickled") == b"yes"
    assert "a secret of" not in repr(client)


def test_up_runs_in_this_process_and_comes_back_warm(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x.csv").write_text("n\n1\n2\n")
    with forebay.up(tmp_path / "data", dram="64MiB", disk="64MiB") as fb:
        fb.mounts.add("files", tmp_path / "files")
        assert fb.sql("select sum(n) as sum from '/files/x.csv'").to_arrow().to_pylist() == [{"sum": 3}]
        with pytest.raises(forebay.Invalid, match="in use"):
            forebay.up(tmp_path / "data")
        # What is still held of it keeps its folder from nobody.
        fs, view, file, rows = fb.fs, fb.read("/files/x.csv"), fb.open("/files/x.csv"), iter(fb.sql("select n from '/files/x.csv'"))
        assert fs.cat_file("/files/x.csv") == file.read() == view == b"n\n1\n2\n"
        next(rows)
    with forebay.up(tmp_path / "data", dram="64MiB", disk="64MiB") as fb:
        assert list(fb.mounts) == ["files"]
        assert fb.usage("/files/").cached_bytes > 0
    assert view == b"n\n1\n2\n"


def test_a_coordinator_with_standbys_is_found_by_its_owner(server):
    for places in [f"{server},127.0.0.1:1", f"127.0.0.1:1,{server}"]:
        with forebay.connect(places) as client:
            assert client.address == places and client.status()["workers"]


def test_an_address_is_a_host_and_a_port():
    for no_address in ["localhost", "http://localhost:7400", ":7400", "localhost:http", "localhost:7400,", "localhost:7400/lake"]:
        with pytest.raises(forebay.Invalid, match="HOST:PORT"):
            forebay.connect(no_address)
    with pytest.raises(TypeError, match="an address is text"):
        forebay.connect(7400)


def test_a_data_folder_that_is_a_file_is_no_defect(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(forebay.Invalid, match="is a file"):
        forebay.up(tmp_path / "data", dram="64MiB", disk=0)


def test_a_client_of_a_cluster_that_was_stopped_says_so_at_once(tmp_path):
    with forebay.up(tmp_path / "data", dram="64MiB", disk="64MiB") as fb:
        nodes = fb.nodes
    for use in (fb.status, lambda: fb.read("/lake/x"), lambda: fb.sql("select 1"), lambda: nodes.get("/tmp/x")):
        with pytest.raises(forebay.Closed, match="was stopped"):
            use()


def test_a_pin_of_what_does_not_fit_is_none(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "large").write_bytes(b"x" * (48 << 20))
    with forebay.up(tmp_path / "data", dram="16MiB", disk=0) as fb:
        fb.mounts.add("files", tmp_path / "files")
        with pytest.raises(forebay.Error, match="/files/large is not pinned"):
            fb.pin("/files/large")
        assert fb.pins == []
        fb.pin("/files/large", load=False)
        assert fb.pins == ["/files/large"]


def test_sizes():
    assert [size_of(text) for text in ("64MiB", "10GB", "1.5KiB", "12", 7, None)] == [64 << 20, 10**10, 1536, 12, 7, None]
    with pytest.raises(ValueError, match="no size"):
        size_of("lots")
