"""Objects as files."""

from __future__ import annotations

import csv
import gc
import io
import json
import os

import pytest

import forebay


def test_reading(fb, lake):
    data = os.urandom(2 << 20)
    (lake / "file.bin").write_bytes(data)
    with fb.open("/lake/file.bin") as file:
        assert file.size == len(data) and file.seekable() and not file.writable() and file.mode == "rb"
        assert file.read(10) == data[:10]
        assert file.tell() == 10
        assert file.seek(-4, io.SEEK_END) == len(data) - 4
        assert file.read() == data[-4:] and file.read() == b"" and file.read(5) == b""
        file.seek(1 << 20)
        view = file.read_buffer(1 << 19)
        assert isinstance(view, memoryview) and view == data[1 << 20 : (1 << 20) + (1 << 19)]
        assert file.tell() == (1 << 20) + (1 << 19)
        into = bytearray(300)
        assert file.readinto(into) == 300 and into == data[file.tell() - 300 : file.tell()]
    with pytest.raises(ValueError):
        file.read()


def test_an_open_file_reads_one_version(fb, lake):
    fb.put("/lake/version", b"first one")
    with fb.open("/lake/version", buffering=16) as file:
        fb.put("/lake/version", b"second !!")
        try:
            assert file.read() == b"first one"
        except forebay.Conflict as error:
            assert error.path == "/lake/version"
    assert fb.read("/lake/version") == b"second !!"


def test_text(fb):
    with fb.open("/lake/text.csv", "w") as file:
        csv.writer(file).writerows([["name", "n"], ["é", 1]])
    with fb.open("/lake/text.csv", "r", newline="") as file:
        assert list(csv.DictReader(file)) == [{"name": "é", "n": "1"}]
    with fb.open("/lake/text.json", "w") as file:
        json.dump({"a": [1, 2]}, file)
    with fb.open("/lake/text.json") as file:
        assert json.load(file) == {"a": [1, 2]}


def test_writing_piece_by_piece(fb, lake):
    pieces = [os.urandom(700_000) for _ in range(30)]
    with fb.open("/lake/large", "wb") as file:
        for piece in pieces:
            assert file.write(piece) == len(piece)
        assert not (lake / "large").exists()
    assert (lake / "large").read_bytes() == b"".join(pieces)
    with fb.open("/lake/empty", "wb"):
        pass
    assert fb.stat("/lake/empty").size == 0


def test_what_is_not_finished_is_not_there(fb):
    with pytest.raises(ZeroDivisionError):
        with fb.open("/lake/half", "wb") as file:
            file.write(b"x" * (20 << 20))
            1 / 0
    with pytest.raises(ZeroDivisionError):
        with fb.open("/lake/half", "w") as file:
            file.write("x")
            1 / 0
    with pytest.warns(ResourceWarning, match="/lake/half"):
        file = fb.open("/lake/half", "wb")
        file.write(b"x")
        del file
        gc.collect()
    with pytest.warns(ResourceWarning, match="/lake/half"):
        file = fb.open("/lake/half", "w")
        file.write("x")
        del file
        gc.collect()
    assert not fb.exists("/lake/half")


def test_creating(fb):
    with fb.open("/lake/once", "xb") as file:
        file.write(b"1")
    with pytest.raises(FileExistsError):
        fb.open("/lake/once", "xb")
    with pytest.raises(ValueError, match="append"):
        fb.open("/lake/once", "ab")
