"""fsspec's own suites."""

from __future__ import annotations

import gc
import io
import os
import pickle
import subprocess
import sys
import uuid

import fsspec
import pytest
from fsspec.compression import compr
from fsspec.tests import abstract

import forebay
from forebay.filesystem import ForebayFileSystem


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self, server, lake):
        return ForebayFileSystem(server)

    @pytest.fixture
    def fs_path(self, fs):
        # One for each test: what was a folder can't be an object on file systems, not even when it is empty.
        path = f"/lake/abstract-{uuid.uuid4()}"
        yield path
        if fs.exists(path):
            fs.rm(path, recursive=True)

    @pytest.fixture
    def supports_empty_directories(self):
        return False


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


def test_it_is_registered_and_names_are_paths(address, fb):
    fb.put("/lake/named/x", b"0123456789")
    fs, path = fsspec.url_to_fs("forebay://lake/named/x")
    assert isinstance(fs, ForebayFileSystem) and path == "/lake/named/x"
    assert fs.unstrip_protocol(path) == "forebay://lake/named/x"
    assert fs.info(path)["size"] == 10 and fs.isdir("/lake/named") and fs.isdir("forebay://lake/")
    assert fs.ls("forebay://lake/named/", detail=False) == [path]
    assert "/lake" in fs.ls("/", detail=False)
    assert fs.find("/lake/named", withdirs=True) == ["/lake/named", path]
    assert fs.glob("forebay://lake/named/*") == [path]
    assert fs.cat_file(path, 2, 4) == b"23" and fs.cat_file(path, -3) == b"789" and fs.cat_file(path, -4, -1) == b"678"
    assert fs.cat_file(path, 10) == fs.cat_file(path, 11, 20) == fs.cat_file(path, 1 << 40) == fs.cat_file(path, 4, 2) == b""
    assert fs.cat_ranges([path, path], [11, 8], [12, 12]) == [b"", b"89"]
    assert isinstance(fs.cat_ranges(["/lake/named/no"], [11], [12])[0], FileNotFoundError)
    assert fs.cat_ranges([path, "/lake/named/no"], [0, 0], [1, 1])[0] == b"0"
    assert isinstance(fs.cat_ranges(["/lake/named/no"], [0], [1])[0], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.ls("/lake/named/no")
    before = fs.ukey(path)
    fs.pipe(path, b"other")
    assert fs.ukey(path) != before
    again = pickle.loads(pickle.dumps(fs))
    assert again.cat(path) == b"other"
    with fsspec.open("forebay://lake/named/text", "wt") as file:
        file.write("é")
    with fsspec.open("forebay://lake/named/text", "rt", encoding="utf-8") as file:
        assert file.read() == "é"


def test_a_checksum_is_the_same_in_every_process_until_the_bytes_are_others(fb):
    path = "/lake/named/sum"
    fb.fs.pipe(path, b"x")
    ask = "import sys, fsspec; print(fsspec.filesystem('forebay', address=sys.argv[1]).checksum(sys.argv[2]))"
    told = [
        subprocess.run(
            [sys.executable, "-c", ask, fb.address, path],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert int(told[0]) == int(told[1]) == fb.fs.checksum(path)
    fb.fs.pipe(path, b"y")
    assert fb.fs.checksum(path) != int(told[0])


def test_transactions(address, fb):
    fs = fsspec.filesystem("forebay")
    with fs.transaction:
        with fs.open("/lake/transaction/a", "wb") as file:
            file.write(b"a")
        assert not fs.exists("/lake/transaction/a")
    assert fs.cat("/lake/transaction/a") == b"a"
    with pytest.raises(ZeroDivisionError):
        with fs.transaction:
            with fs.open("/lake/transaction/b", "wb") as file:
                file.write(b"b")
            1 / 0
    assert not fs.exists("/lake/transaction/b")


class OfNodes(Fixtures):
    """The same over temporary data."""

    @pytest.fixture
    def fs_path(self, fs):
        path = f"/tmp/abstract-{uuid.uuid4()}"
        fs.mkdir(path)
        yield path
        fs.rm(path, recursive=True)

    @pytest.fixture
    def supports_empty_directories(self):
        return True


class TestCopyOfNodes(abstract.AbstractCopyTests, OfNodes):
    pass


class TestGetOfNodes(abstract.AbstractGetTests, OfNodes):
    pass


class TestPutOfNodes(abstract.AbstractPutTests, OfNodes):
    pass


class TestOpenOfNodes(abstract.AbstractOpenTests, OfNodes):
    pass


class TestPipeOfNodes(abstract.AbstractPipeTests, OfNodes):
    pass


def test_one_of_many_creates_a_temporary_file(fb):
    fs, root = fb.fs, f"/tmp/{uuid.uuid4().hex}"
    for size in [0, 10, 9 << 20]:
        path = f"{root}/{size}/x"
        files = [fs.open(path, "xb") for _ in range(3)]
        for number, file in enumerate(files):
            file.write(bytes([number]) * size)
        files[1].close()
        for file in files[0], files[2]:
            with pytest.raises(FileExistsError):
                file.close()
        assert fs.cat_file(path) == bytes([1]) * size
        with pytest.raises(FileExistsError):
            fs.pipe_file(path, b"other", mode="create")
        assert fs.find(root, withdirs=True)[-1] == path and len(fb.nodes.ls(f"{root}/{size}")) == 1
        fs.rm(root, recursive=True)


def test_why_a_temporary_file_is_not_written_is_said(fb, monkeypatch):
    path = f"/tmp/{uuid.uuid4().hex}/x"
    file = fb.fs.open(path, "xb")
    fb.fs.pipe_file(path, b"first")

    def fails(self, path, recursive=False):
        raise forebay.DataLost(f"{path}: not now", path)

    with monkeypatch.context() as patched:
        patched.setattr(forebay.nodes.Nodes, "rm", fails)
        with pytest.raises(FileExistsError):
            file.close()
    assert fb.fs.cat_file(path) == b"first"
    fb.fs.rm(path.rpartition("/")[0], recursive=True)


def test_temporary_data_is_files(address, fb):
    fs = fsspec.filesystem("forebay")
    root = f"/tmp/{uuid.uuid4()}"
    large = bytes(range(256)) * (150 << 10)
    with fsspec.open(f"forebay:/{root}/a/large", "wb") as file:
        for at in range(0, len(large), 5 << 20):
            file.write(large[at : at + (5 << 20)])
        assert not fs.exists(f"{root}/a/large") and fs.ls(f"{root}/a") == []
    assert fs.cat(f"{root}/a/large") == large and fs.info(f"{root}/a/large")["size"] == len(large)
    assert fs.find(root) == fs.glob(f"{root}/a/*") == [f"{root}/a/large"], "what is large is listed as well"
    for again in [b"", large[1:], b"short", large]:
        fs.pipe(f"{root}/a/large", again)
        assert fs.cat(f"{root}/a/large") == again and fs.find(root) == [f"{root}/a/large"]
    assert fs.cat_file(f"{root}/a/large", -5, -1) == large[-5:-1]
    before = fs.ukey(f"{root}/a/large")
    fs.pipe(f"{root}/a/large", b"small")
    assert fs.cat(f"{root}/a/large") == b"small" and fs.ukey(f"{root}/a/large") != before
    with pytest.raises(ZeroDivisionError):
        with fs.open(f"{root}/a/large", "wb") as file:
            file.write(large)
            1 / 0
    assert fs.cat(f"{root}/a/large") == b"small" and fs.find(root) == [f"{root}/a/large"]
    fs.mv(f"{root}/a/large", f"{root}/b/moved")
    assert fs.find(root, withdirs=True) == [root, f"{root}/a", f"{root}/b", f"{root}/b/moved"]
    with fs.open(f"{root}/b/moved", "ab") as file:
        file.write(b" and more")
    fs.copy(f"{root}/b/moved", "/lake/named/from-tmp")
    assert fs.cat("/lake/named/from-tmp") == b"small and more"
    with pytest.raises(FileNotFoundError):
        fs.cat(f"{root}/none")
    with pytest.raises(OSError):
        fs.rmdir(root)
    fs.rm(root, recursive=True)
    assert not fs.exists(root)


@pytest.mark.parametrize("root", ["/lake", "/tmp"])
def test_a_move_loses_nothing(address, fb, root):
    fs, top = fsspec.filesystem("forebay"), f"{root}/{uuid.uuid4()}"
    files = {"a/x": b"1", "a/y": b"2", "a/s/z": b"3"}

    def after(source, target, **options):
        for name, data in files.items():
            fs.pipe(f"{top}/{name}", data)
        try:
            fs.mv(source, target, **options)
            return {path.removeprefix(f"{top}/"): data for path, data in ((path, fs.cat_file(path)) for path in fs.find(top))}
        finally:
            fs.rm(top, recursive=True)

    here = top.lstrip("/")
    assert after(f"{top}/a/x", f"forebay://{here}/a/x") == files, "another spelling of the same path"
    assert after(f"{top}/a/x", f"{top}/a/") == after(f"{top}/a/x", f"{top}/a") == files, "where it is already"
    assert after(f"{top}/a/x", f"{here}/a/x", maxdepth=1) == files
    assert after(f"{top}/a/*", f"{top}/a/") == after(f"{top}/a/?", f"{top}/a") == files
    assert after(f"{top}/a/s", f"{top}/a", recursive=True) == files
    assert after(f"{top}/a/*", f"{top}/b/") == {"a/s/z": b"3", "b/x": b"1", "b/y": b"2"}
    assert after(f"{top}/a", f"{top}/b", recursive=True) == {"b/s/z": b"3", "b/x": b"1", "b/y": b"2"}
    assert after(f"{top}/a", f"{top}/b", recursive=True, maxdepth=1) == {"a/s/z": b"3", "b/x": b"1", "b/y": b"2"}
    if root == "/lake":
        within = after(f"{top}/a", f"{top}/a/b", recursive=True)
        assert within == {"a/b/x": b"1", "a/b/y": b"2", "a/b/s/z": b"3"}
        with pytest.raises(IsADirectoryError):
            after(f"{top}/a", f"{top}/b")
    else:
        with pytest.raises(forebay.Invalid, match="into itself"):
            after(f"{top}/a", f"{top}/a/b", recursive=True)
    with pytest.raises(FileNotFoundError):
        after(f"{top}/none", f"{top}/b")


def test_only_directories_are_removed_as_such(fb):
    fs = fb.fs
    for root in ["/lake", "/tmp"]:
        path = f"{root}/{uuid.uuid4()}"
        fs.pipe(path, b"kept")
        with pytest.raises(NotADirectoryError):
            fs.rmdir(path)
        assert fs.cat_file(path) == b"kept"
        fs.rm(path)


@pytest.mark.parametrize("mode", ["w", "wb", "x", "xb"])
@pytest.mark.parametrize("compression", [None, "gzip", "bz2", "xz", "zip", "infer"])
def test_what_is_written_is_there_whole_or_not_at_all(fb, mode, compression):
    data = "north\n" * 1000 if "b" not in mode else b"north\n" * 1000
    reading = "r" + mode[1:]
    for root in ["/lake", "/tmp"]:
        fs, top = fb.fs, f"{root}/{uuid.uuid4()}"
        with fs.open(f"{top}/a.gz", mode, compression=compression) as file:
            file.write(data)
        closed = fs.open(f"{top}/b.gz", mode, compression=compression)
        closed.write(data)
        closed.close()
        with fs.transaction, fs.open(f"{top}/c.gz", mode, compression=compression) as file:
            file.write(data)
        for name in "abc":
            with fs.open(f"{top}/{name}.gz", reading, compression=compression) as file:
                assert file.read() == data
        with pytest.raises(ZeroDivisionError):
            with fs.open(f"{top}/half.gz", mode, compression=compression) as file:
                file.write(data)
                1 / 0
        forgotten = fs.open(f"{top}/half.gz", mode, compression=compression)
        forgotten.write(data)
        with pytest.warns(ResourceWarning, match="half.gz"):
            del forgotten
            gc.collect()
        assert not fs.exists(f"{top}/half.gz")
        fs.rm(top, recursive=True)


def test_a_compressor_that_closes_what_it_writes_to_writes_no_part(fb, monkeypatch):
    monkeypatch.setitem(compr, "closing", lambda infile, mode: io.BufferedWriter(infile))
    for mode, data in [("wb", b"half"), ("w", "half")]:
        path = f"/lake/{uuid.uuid4()}"
        with pytest.raises(ZeroDivisionError):
            with fb.fs.open(path, mode, compression="closing") as file:
                file.write(data)
                1 / 0
        assert not fb.fs.exists(path)
        with fb.fs.open(path, mode, compression="closing") as file:
            file.write(data)
        assert fb.fs.cat_file(path) == b"half"
        fb.fs.rm(path)


def test_an_error_of_a_temporary_file_names_the_file(fb):
    path = f"/tmp/{uuid.uuid4().hex}"
    fb.fs.mkdir(path)
    with pytest.raises(forebay.Invalid, match="is a directory") as caught:
        fb.fs.pipe_file(path, b"x")
    assert caught.value.path == path and "draft" not in str(caught.value)
    fb.fs.rmdir(path)
