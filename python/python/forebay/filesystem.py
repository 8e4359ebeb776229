"""Forebay as an fsspec file system, protocol ``forebay``: ``forebay://MOUNT/KEY``.

pandas, Dask, PyArrow, DuckDB and whatever else takes fsspec URLs find it by the package's entry point. Storage options are
those of :func:`forebay.connect`: ``address``, ``token``, ``tls_ca``, ``tls_cert``, ``tls_key``, ``in_place``; without them the environment's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import partial
from glob import has_magic
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.utils import other_paths, stringify_path, tokenize

from forebay.client import Client
from forebay.entries import Entry
from forebay.errors import Error, Invalid, NotFound
from forebay.files import BUFFER_BYTES, CompressedWriter, ObjectReader, ObjectWriter, TextWriter, parse_mode
from forebay.place import Place
from forebay.temporary import Temporary, is_temporary

__all__ = ["ForebayFileSystem"]


class ForebayFileSystem(AbstractFileSystem):
    """The mounts of a cluster, as folders of ``/``, and temporary data below ``/tmp``, which listings of ``/`` leave out.

    Nothing is cached here: versions and listings are as fresh as each mount's rule wants them, and bytes are in the tiers.
    Folders are prefixes that objects share: an empty one can't be, but below ``/tmp``.
    """

    protocol = "forebay"
    root_marker = "/"
    blocksize = 8 << 20

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        tls_ca: str | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        in_place: bool = True,
        memory: int | str | None = None,
        partitions: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        tls = {"tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key}
        place = Place(address, token=token, **tls, in_place=in_place, memory=memory, partitions=partitions)
        #: The client, which connects at first use.
        self.client = Client(place)
        self._temporary = Temporary(self.client)

    @property
    def fsid(self) -> str:
        return f"forebay-{self.client.address}"

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text: str = stringify_path(path)
        text = text.removeprefix("forebay://").removeprefix("forebay:")
        return "/" + text.strip("/")

    def unstrip_protocol(self, name: str) -> str:
        path: str = self._strip_protocol(name)
        return "forebay://" + path.lstrip("/")

    # looking

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path == "/":
            return _info(Entry("/", True, 0, None, None))
        if is_temporary(path):
            return self._temporary.info(path)
        return _info(self.client.stat(path))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        infos = self._temporary.ls(path) if is_temporary(path) else [_info(entry) for entry in self.client.ls(path)]
        return infos if detail else [info["name"] for info in infos]

    def exists(self, path: str, **_: Any) -> bool:
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **options: Any) -> Any:
        path = self._strip_protocol(path)
        if maxdepth is not None or path == "/" or is_temporary(path):
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **options)
        try:
            entries = self.client.ls(path, recursive=True)
        except NotFound:
            entries = []
        found = {info["name"]: info for info in map(_info, entries)}
        if withdirs and path not in found and found:
            for name in list(found):
                while len(name := name.rpartition("/")[0]) >= len(path) and name not in found:
                    found[name] = _info(Entry(name, True, 0, None, None))
        names = sorted(found)
        return {name: found[name] for name in names} if detail else names

    def modified(self, path: str) -> datetime:
        path = self._strip_protocol(path)
        if is_temporary(path):
            # No time is kept of it. Who asks wants to know whether a copy is still good, and it may have changed just now.
            self._temporary.info(path)
            return datetime.now(timezone.utc)
        modified = self.client.stat(path).modified
        if modified is None:
            raise IsADirectoryError(path)
        return modified

    def ukey(self, path: str) -> str:
        """The object's version: other bytes have another one."""
        stripped = self._strip_protocol(path)
        if is_temporary(stripped):
            return self._temporary.version(stripped)
        return str(self.info(path)["version"])

    def checksum(self, path: str) -> int:
        """A number for the version, the same in every process."""
        return int(tokenize(self.ukey(path)), 16)

    def invalidate_cache(self, path: str | None = None) -> None:
        stripped = "/" if path is None else self._strip_protocol(path)
        if stripped != "/" and not is_temporary(stripped):
            self.client.refresh(stripped)

    # reading

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **options: Any,
    ) -> Any:
        """As fsspec has it. What is written is given up when its ``with`` block ends by an exception, be it text or compressed."""
        codec = get_compression(path, compression)
        if mode.startswith("r") or (codec is None and "b" in mode):
            return super().open(path, mode, block_size, cache_options, codec, **options)
        text = {name: options.pop(name) for name in ("encoding", "errors", "newline") if name in options}
        writer = super().open(path, mode.replace("t", "").replace("b", "") + "b", block_size, cache_options, **options)
        opened = writer if codec is None else CompressedWriter(partial(compr[codec], mode="w"), writer)
        return opened if "b" in mode else TextWriter(opened, **text)

    def _open(
        self, path: str, mode: str = "rb", block_size: int | None = None, autocommit: bool = True, **_: Any
    ) -> ObjectReader | ObjectWriter:
        if is_temporary(path):
            return self._temporary.open(path, mode, block_size, autocommit)
        if mode.startswith("a"):
            raise NotImplementedError(f"{path}: objects can't be appended to: read the object and write it anew")
        direction, _text = parse_mode(mode)
        if direction == "r":
            return ObjectReader(self.client._connection.open(path), block_size or BUFFER_BYTES)
        return self.client._writer(path, direction == "x", autocommit)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        data: bytes = self.cat_ranges([path], [start], [end], on_error="raise")[0]
        return data

    def cat_ranges(
        self, paths: list[str], starts: Any, ends: Any, max_gap: int | None = None, on_error: str = "return", **_: Any
    ) -> list[Any]:
        """Many ranges at once, each without a request for what lies between."""
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        starts = starts if isinstance(starts, list) else [starts] * len(paths)
        ends = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("as many starts and ends as paths")
        stripped = [self._strip_protocol(path) for path in paths]
        wanted = list(zip(stripped, starts, ends))
        ranges = [self._range(*each) for each in wanted if not is_temporary(each[0])]
        read = iter(self.client._connection.read_many(ranges) if ranges else [])
        answers = [self._read_temporary(*each) if is_temporary(each[0]) else self._sliced(each, next(read)) for each in wanted]
        if on_error == "raise":
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
        return [answer if isinstance(answer, BaseException) else bytes(answer) for answer in answers]

    def _sliced(self, wanted: tuple[str, int | None, int | None], answer: Any) -> Any:
        """What a range gave, as Python's slices have it: nothing where it begins behind the end."""
        path, start, _ = wanted
        if isinstance(answer, Invalid) and start is not None and start > 0:
            try:
                return b"" if self.info(path)["size"] < start else answer
            except Error:
                pass
        return answer

    def _read_temporary(self, path: str, start: int | None, end: int | None) -> Any:
        try:
            return self._temporary.read(path, start, end)
        except OSError as error:
            return error

    def _range(self, path: str, start: int | None, end: int | None) -> tuple[str, int, int | None]:
        """Path, offset and length of a range as Python's slices have it."""
        start = start or 0
        if end is None:
            return path, start, None
        if start < 0 or end < 0:
            start, end, _ = slice(start, end).indices(self.info(path)["size"])
        return path, start, max(0, end - start)

    # writing

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        if is_temporary(path):
            return self._temporary.put(path, value, mode == "create")
        self.client.put(path, value, if_absent=mode == "create")

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        if not truncate and self.exists(path):
            raise NotImplementedError(f"{path}: objects have no time that could be set")
        self.pipe_file(path, b"")

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if is_temporary(path1) or is_temporary(path2):
            if self.isdir(path1):
                return self.makedirs(path2, exist_ok=True)
            return self.pipe_file(path2, self.cat_file(path1))
        try:
            self.client.copy(path1, path2)
        except NotFound:
            # What is copied as a folder is the objects in it.
            if not self.isdir(path1):
                raise

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **options: Any) -> None:
        """Moves a file, those of a pattern, or a folder with ``recursive``: copies, then deletes what was copied and nothing else."""
        path1, path2 = stringify_path(path1), stringify_path(path2)
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if is_temporary(source) and is_temporary(target) and maxdepth is None and not has_magic(source):
            return self._temporary.move(source, target)
        paths = self.expand_path(path1, recursive=recursive, maxdepth=maxdepth)
        folders = {path for path in paths if self.isdir(path)}
        if not recursive or maxdepth is not None:
            paths = [path for path in paths if path not in folders]
        if not paths:
            raise IsADirectoryError(21, "it is a folder, which is moved with recursive=True", source)
        into = path2.endswith("/") or self.isdir(target)
        below = len(paths) == 1 if has_magic(path1) else into and not path1.endswith("/")
        pairs = dict(zip(paths, map(self._strip_protocol, other_paths(paths, path2, exists=below))))
        moved = {old: new for old, new in pairs.items() if old != new}
        for old, new in moved.items():
            if new in pairs and old not in folders:
                raise Invalid(f"{old}: it would replace {new}, which is to be moved too: move it somewhere else first", old)
        for old, new in moved.items():
            self.cp_file(old, new)
        self.client.delete([old for old in moved if old not in folders and not is_temporary(old)])
        # What is in a directory before it.
        for old in sorted(filter(is_temporary, moved), reverse=True):
            self._temporary.remove(old, recursive=False)

    def rm_file(self, path: str) -> None:
        path = self._strip_protocol(path)
        if is_temporary(path):
            return self._temporary.remove(path, recursive=False)
        self.client.delete(path)

    def rm(self, path: str | Iterable[str], recursive: bool = False, maxdepth: int | None = None) -> None:
        given = [path] if isinstance(path, str) else list(path)
        temporary = [each for each in map(self._strip_protocol, given) if is_temporary(each)]
        if temporary and maxdepth is None:
            for each in self.expand_path(temporary):
                self._temporary.remove(each, recursive)
            given = [each for each in given if not is_temporary(self._strip_protocol(each))]
            if not given:
                return
        paths = self.expand_path(given, recursive=recursive, maxdepth=maxdepth)
        self.client.delete([each for each in paths if not self.isdir(each)])

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Does nothing for objects: a folder is there when something is in it."""
        path = self._strip_protocol(path)
        if is_temporary(path):
            self._temporary.mkdir(path, create_parents)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Does nothing for objects: a folder is there when something is in it."""
        path = self._strip_protocol(path)
        if is_temporary(path):
            self._temporary.makedirs(path, exist_ok)

    def rmdir(self, path: str) -> None:
        path = self._strip_protocol(path)
        if self.isfile(path):
            raise NotADirectoryError(20, os.strerror(20), path)
        if is_temporary(path):
            return self._temporary.remove(path, recursive=False)
        if self.exists(path) and self.ls(path, detail=False):
            raise OSError(39, os.strerror(39), path)


def _info(entry: Entry) -> dict[str, Any]:
    info: dict[str, Any] = {
        "name": "/" + entry.path.strip("/"),
        "type": "directory" if entry.folder else "file",
        "size": entry.size,
    }
    if not entry.folder:
        assert entry.modified is not None
        info |= {"mtime": entry.modified.timestamp(), "version": entry.version, "ETag": entry.version}
    return info
