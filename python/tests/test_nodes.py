"""Temporary data."""

from __future__ import annotations

import array
import asyncio
import errno
import os
import pickle
import time
import uuid

import numpy
import pyarrow
import pytest

import forebay


@pytest.fixture
def tmp(fb):
    """A directory of the test's own."""
    path = f"/tmp/{uuid.uuid4()}"
    fb.nodes.mkdir(path)
    yield path
    fb.nodes.rm(path, recursive=True)


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 16 << 10, (16 << 10) + 1, 1 << 20, (5 << 20) + 3, (33 << 20) + 1])
def test_what_is_put_comes_back(fb, tmp, size):
    data = os.urandom(size)
    fb.nodes.put(f"{tmp}/value", data)
    view = fb.nodes.get(f"{tmp}/value")
    assert isinstance(view, memoryview) and view.readonly and view == data
    assert fb.nodes.stat(f"{tmp}/value") == forebay.Node(f"{tmp}/value", "key-value", size)
    fb.nodes.put(f"{tmp}/value", b"other")
    assert view == data and fb.nodes.get(f"{tmp}/value") == b"other"


def test_many_are_put_and_got_by_their_paths(fb, server, tmp):
    nodes = fb.nodes
    for table in "ab":
        nodes.mkdir(f"{tmp}/{table}", "table")
    sizes = [0, 1, 100, 4096, 4097, 70_000]
    values = {f"{tmp}/{'ab'[at % 2]}/{at}": os.urandom(sizes[at % 6]) for at in range(600)}
    assert nodes.put_many(values) == {} and nodes.put_many({}) == {}
    got = nodes.get_many(reversed(values))
    assert all(isinstance(value, memoryview) for value in got)
    assert [bytes(value) for value in got] == list(reversed(values.values()))
    nodes.create(f"{tmp}/file")
    refused = nodes.put_many({f"{tmp}/file": b"x", f"{tmp}/none/k": b"y", "/lake/x": b"z", f"{tmp}/a/0": bytearray(b"new")})
    assert {path: type(error) for path, error in refused.items()} == {
        f"{tmp}/file": forebay.Invalid,
        f"{tmp}/none/k": forebay.NotFound,
        "/lake/x": forebay.Invalid,
    }
    assert all(error.path == path and path in str(error) for path, error in refused.items())
    value, missing, file, elsewhere = nodes.get_many([f"{tmp}/a/0", f"{tmp}/a/none", f"{tmp}/file", "/lake/x"])
    assert value == b"new" and missing is None
    assert isinstance(file, forebay.Invalid) and isinstance(elsewhere, forebay.Invalid) and nodes.get_many([]) == []
    with pytest.raises(TypeError):
        nodes.put_many({f"{tmp}/a/text": "text"})

    async def use():
        async with await forebay.aio.connect(server) as aio:
            assert await aio.nodes.put_many({f"{tmp}/b/x": b"x"}) == {}
            value, missing = await aio.nodes.get_many([f"{tmp}/b/x", f"{tmp}/b/y"])
            assert value == b"x" and missing is None

    asyncio.run(use())


def test_anything_with_bytes_can_be_put(fb, tmp):
    numbers = array.array("d", [1.5, -2.5])
    for data in (bytearray(b"abc"), memoryview(b"abcdef")[::1], numbers, memoryview(os.urandom(100_000))[5:50_000]):
        fb.nodes.put(f"{tmp}/k", data)
        assert fb.nodes.get(f"{tmp}/k") == bytes(memoryview(data).cast("B"))
    with pytest.raises(TypeError):
        fb.nodes.put(f"{tmp}/k", "text")
    table = numpy.arange(6.0).reshape(2, 3)
    for array_of in (table, table[:0], table[:, :0], numpy.float32(1)):
        fb.nodes.put(f"{tmp}/k", array_of)
        assert fb.nodes.get(f"{tmp}/k") == array_of.tobytes()
    with pytest.raises(TypeError, match="ascontiguousarray"):
        fb.nodes.put(f"{tmp}/k", table.T)


def test_nodes_ask_for_locations(fb, tmp):
    nodes = fb.nodes
    nodes.mkdir(f"{tmp}/there", location="rack1")
    nodes.create(f"{tmp}/there/file")
    nodes.create(f"{tmp}/there/other", location="rack2")
    nodes.create(f"{tmp}/there/free", location="any")
    data = os.urandom(3 << 20)
    nodes.append(f"{tmp}/there/file", data)
    # Nobody is there.
    assert nodes.read(f"{tmp}/there/file") == data
    locations = [nodes.stat(f"{tmp}/there/{name}").location for name in ("file", "other", "free")]
    assert nodes.stat(f"{tmp}/there").location == "rack1" and locations == ["rack1", "rack2", None]
    with pytest.raises(forebay.Invalid, match="location"):
        nodes.create(f"{tmp}/none", location="")


def test_values_and_files_lie_as_they_are_asked_to(fb, server, tmp):
    nodes = fb.nodes
    path = f"{tmp}/k"
    nodes.put(path, b"first")
    assert nodes.stat(path).storage_class == nodes.stat(tmp).storage_class == "dram" and nodes.ls(tmp)[0].storage_class is None
    nodes.put(path, b"second", location="rack1")
    nodes.put(path, b"third", storage_class="dram")
    nodes.put(path, b"fourth")
    stat = nodes.stat(path)
    assert (stat.storage_class, stat.location) == ("dram", "rack1") and nodes.get(path) == b"fourth"
    assert nodes.append(f"{tmp}/f", b"12", storage_class="dram") == 2
    assert nodes.append(f"{tmp}/f", b"34", storage_class="dram", location="rack1") == 4
    assert nodes.read(f"{tmp}/f") == b"1234" and [node.name for node in nodes.ls(tmp)] == ["f", "k"]
    for refused in (lambda: nodes.put(path, b"", storage_class="tape"), lambda: nodes.append(path, b"", storage_class="tape")):
        with pytest.raises(forebay.Invalid, match="storage class"):
            refused()
    with pytest.raises(forebay.NotFound):
        nodes.append(f"{tmp}/none", b"")

    async def use():
        async with await forebay.aio.connect(server) as aio:
            await aio.nodes.put(f"{tmp}/aio", b"x", location="rack2")
            assert await aio.nodes.append(f"{tmp}/aio-file", b"x", location="rack2") == 1
            assert {(await aio.nodes.stat(f"{tmp}/{name}")).location for name in ("aio", "aio-file")} == {"rack2"}

    asyncio.run(use())


def test_what_was_opened_and_is_replaced_says_so(fb, tmp):
    path = f"{tmp}/k"
    fb.nodes.put(path, b"a" * (3 << 20))
    with fb.fs.open(path, "rb") as file:
        fb.nodes.put(path, b"b" * (3 << 20))
        with pytest.raises(forebay.DataLost, match="replaced or moved since it was opened"):
            file.read()


def test_arrow_tables(fb, tmp):
    table = pyarrow.table({"n": range(100_000), "word": [f"word-{n % 7}" for n in range(100_000)]})
    fb.nodes.put_arrow(f"{tmp}/table", table)
    again = fb.nodes.get_arrow(f"{tmp}/table")
    assert again.equals(table)
    fb.nodes.put_arrow(f"{tmp}/batch", table.to_batches()[0].slice(10, 5))
    assert fb.nodes.get_arrow(f"{tmp}/batch").column("n").to_pylist() == [10, 11, 12, 13, 14]
    fb.nodes.put(f"{tmp}/bytes", b"none")
    with pytest.raises(forebay.Invalid, match="put_arrow") as caught:
        fb.nodes.get_arrow(f"{tmp}/bytes")
    assert caught.value.path == f"{tmp}/bytes"
    with pytest.raises(TypeError, match="a list of paths"):
        fb.nodes.get_many(f"{tmp}/bytes")


def test_offsets_are_counted_from_the_beginning(fb, tmp):
    path = f"{tmp}/offsets"
    fb.nodes.create(path)
    fb.nodes.append(path, b"0123456789")
    for wrong in (lambda: fb.nodes.read(path, -1), lambda: fb.nodes.write(path, -1, b"x")):
        with pytest.raises(ValueError, match="before the beginning"):
            wrong()
    assert fb.nodes.read(path, 8) == b"89"
    for wrong in (lambda: fb.nodes.read(path, 0, -1), lambda: fb.nodes.lease(path, -1), lambda: fb.nodes.lease(path, float("nan"))):
        with pytest.raises(forebay.Invalid) as caught:
            wrong()
        assert caught.value.path == path


@pytest.mark.parametrize("size", [0, 10, 70_000, (2 << 20) + 1])
def test_parts_of_values_are_read_as_those_of_files(fb, tmp, size):
    path, data = f"{tmp}/value", os.urandom(size)
    fb.nodes.put(path, data)
    for offset, length in [(0, 5), (3, 4), (0, 1 << 40), (size, 5), (0, 0)]:
        if offset <= size:
            assert fb.nodes.read(path, offset, length) == data[offset : offset + length]
    with pytest.raises(forebay.Invalid, match="behind its end"):
        fb.nodes.read(path, size + 1, 5)
    with pytest.raises(forebay.Invalid, match="directory"):
        fb.nodes.read(tmp, 0, 5)


def test_files(fb, tmp):
    path = f"{tmp}/file"
    fb.nodes.create(path)
    pieces = [os.urandom(size) for size in (10, 70_000, 1 << 20, 1)]
    data = b"".join(pieces)
    lengths = [fb.nodes.append(path, piece) for piece in pieces]
    assert lengths[-1] == len(data) and fb.nodes.read(path) == data
    assert fb.nodes.read(path, 5, 70_000) == data[5:70_005] and fb.nodes.read(path, len(data) - 3, 100) == data[-3:]
    assert fb.nodes.write(path, 3, b"XYZ") == len(data)
    assert fb.nodes.read(path, 0, 10) == data[:3] + b"XYZ" + data[6:10]
    with pytest.raises(forebay.Invalid):
        fb.nodes.write(path, len(data) + 1, b"a hole")


def test_names(fb, tmp):
    nodes = fb.nodes
    nodes.mkdir(f"{tmp}/a/b", parents=True)
    nodes.mkdir(f"{tmp}/a/b", parents=True, exist_ok=True)
    nodes.mkdir(f"{tmp}/table", "table")
    nodes.put(f"{tmp}/table/é ~", b"1")
    nodes.create(f"{tmp}/hidden", enumerable=False)
    assert [(node.name, node.type, node.container) for node in nodes.ls(tmp)] == [
        ("a", "directory", True),
        ("table", "table", True),
    ]
    assert nodes.ls(f"{tmp}/table") == [forebay.Node(f"{tmp}/table/é ~", "key-value", 1)]
    nodes.rename(f"{tmp}/table/é ~", f"{tmp}/a/b")
    assert nodes.get(f"{tmp}/a/b/é ~") == b"1" and nodes.ls(f"{tmp}/table") == []
    assert nodes.exists(f"{tmp}/hidden") and not nodes.exists(f"{tmp}/none")
    assert tmp in [node.path for node in nodes.ls()]


def test_a_bag_is_read_as_one(fb, tmp):
    fb.nodes.mkdir(f"{tmp}/bag", "bag")
    fb.nodes.mkdir(f"{tmp}/bag/2", "bag")
    for name in ("3", "1", "2/b", "2/a"):
        fb.nodes.create(f"{tmp}/bag/{name}")
        fb.nodes.append(f"{tmp}/bag/{name}", name.encode() * 1000)
    assert fb.nodes.bag(f"{tmp}/bag") == b"".join(name * 1000 for name in (b"1", b"2/a", b"2/b", b"3"))


def test_a_quota_bounds_what_is_in_a_container(fb, server, tmp):
    nodes, path = fb.nodes, f"{tmp}/full"
    nodes.mkdir(path, quota=1000)
    nodes.put(f"{path}/k", bytes(600))
    with pytest.raises(forebay.NoSpace, match="quota of 1000 bytes") as caught:
        nodes.put(f"{path}/l", bytes(401))
    assert caught.value.path == f"{path}/l"
    refused = nodes.put_many({f"{path}/{name}": bytes(300) for name in "lm"})
    assert list(refused) == [f"{path}/m"] and isinstance(refused[f"{path}/m"], forebay.NoSpace)
    assert nodes.usage(path) == forebay.NodeUsage(900, 1000) and nodes.usage(tmp) == forebay.NodeUsage(0, None)
    nodes.mkdir(f"{path}/inside")
    with pytest.raises(forebay.NoSpace, match="quota of 1000 bytes"):
        nodes.put(f"{path}/inside/k", bytes(101))
    nodes.put(f"{path}/inside/k", bytes(100))
    assert nodes.usage(path) == forebay.NodeUsage(1000, 1000) and nodes.usage(f"{path}/inside") == forebay.NodeUsage(100, None)
    nodes.set_quota(path, "2KiB")
    assert nodes.usage(path).quota == 2048
    nodes.set_quota(path, None)
    nodes.put(f"{path}/m", bytes(5000))
    for wrong in (-1, "-1KiB", 1 << 64, "5 apples", "1e999GiB"):
        for call in (lambda: nodes.mkdir(f"{tmp}/none", quota=wrong), lambda: nodes.set_quota(path, wrong)):
            with pytest.raises(forebay.Invalid) as caught:
                call()
            assert caught.value.path in (f"{tmp}/none", path)
    assert not nodes.exists(f"{tmp}/none"), "nothing is made with a quota that is none"

    async def use():
        async with await forebay.aio.connect(server) as aio:
            await aio.nodes.mkdir(f"{tmp}/aio", "table", quota=10)
            with pytest.raises(forebay.NoSpace):
                await aio.nodes.put(f"{tmp}/aio/k", bytes(11))
            await aio.nodes.set_quota(f"{tmp}/aio", 11)
            await aio.nodes.put(f"{tmp}/aio/k", bytes(11))
            assert await aio.nodes.usage(f"{tmp}/aio") == forebay.NodeUsage(11, 11)

    asyncio.run(use())


def test_a_lease_ends(fb, tmp):
    fb.nodes.mkdir(f"{tmp}/job")
    fb.nodes.put(f"{tmp}/job/x", b"x")
    fb.nodes.lease(f"{tmp}/job", 0.3)
    deadline = time.monotonic() + 20
    while fb.nodes.exists(f"{tmp}/job"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_errors_are_pythons_own(fb, tmp):
    nodes = fb.nodes
    nodes.put(f"{tmp}/k", b"v")
    nodes.create(f"{tmp}/f")
    for kind, of, code, call in [
        (forebay.NotFound, FileNotFoundError, errno.ENOENT, lambda: nodes.get(f"{tmp}/none")),
        (forebay.NotFound, FileNotFoundError, errno.ENOENT, lambda: nodes.stat(f"{tmp}/none")),
        (forebay.AlreadyExists, FileExistsError, errno.EEXIST, lambda: nodes.create(f"{tmp}/f")),
        (forebay.NotEmpty, OSError, errno.ENOTEMPTY, lambda: nodes.rm(tmp)),
        (forebay.NotContainer, NotADirectoryError, errno.ENOTDIR, lambda: nodes.put(f"{tmp}/k/x", b"")),
        (forebay.Invalid, ValueError, None, lambda: nodes.get(f"{tmp}/f")),
        (forebay.Invalid, ValueError, None, lambda: nodes.put("/lake/x", b"")),
        (forebay.Invalid, ValueError, None, lambda: nodes.create(f"{tmp}/x", "folder")),
    ]:
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        assert isinstance(error, of) and error.path and error.path in str(error), error
        assert code is None or error.errno == code
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.path) == (type(error), str(error), error.path)
        assert code is None or (again.errno, again.filename) == (code, error.path)
    with pytest.raises(forebay.AlreadyExists):
        nodes.create(f"{tmp}/f", "directory", exist_ok=True)
    nodes.put(f"{tmp}/value", b"kept")
    nodes.create(f"{tmp}/value", "key-value", exist_ok=True)
    assert nodes.get(f"{tmp}/value") == b"kept"
    nodes.create(f"{tmp}/value", "key-value")
    assert nodes.get(f"{tmp}/value") == b""


def test_everything_is_awaited(server, tmp):
    data = os.urandom(1 << 20)

    async def use():
        async with await forebay.aio.connect(server) as aio:
            nodes = aio.nodes
            await nodes.mkdir(f"{tmp}/a/t", "table", parents=True)
            await asyncio.gather(*(nodes.put(f"{tmp}/a/t/{n:03}", b"%d" % n) for n in range(200)))
            values = await asyncio.gather(*(nodes.get(f"{tmp}/a/t/{n:03}") for n in range(200)))
            assert [bytes(value) for value in values] == [b"%d" % n for n in range(200)]
            assert [node.name for node in await nodes.ls(f"{tmp}/a/t")] == [f"{n:03}" for n in range(200)]
            await nodes.mkdir(f"{tmp}/bag", "bag")
            await nodes.create(f"{tmp}/bag/f")
            assert await nodes.append(f"{tmp}/bag/f", data) == len(data)
            assert await nodes.write(f"{tmp}/bag/f", 0, b"0") == len(data)
            assert await nodes.read(f"{tmp}/bag/f", 1) == data[1:] and (await nodes.bag(f"{tmp}/bag"))[1:] == data[1:]
            await nodes.put_arrow(f"{tmp}/arrow", {"n": [1, 2]})
            assert (await nodes.get_arrow(f"{tmp}/arrow")).to_pydict() == {"n": [1, 2]}
            await nodes.rename(f"{tmp}/arrow", f"{tmp}/moved")
            assert (await nodes.stat(f"{tmp}/moved")).type == "key-value" and not await nodes.exists(f"{tmp}/arrow")
            await nodes.lease(f"{tmp}/moved", None)
            await nodes.rm(f"{tmp}/a", recursive=True)
            with pytest.raises(forebay.NotFound):
                await nodes.stat(f"{tmp}/a")

    asyncio.run(use())
