"""Temporary data as files, for the fsspec file system: what is below ``/tmp``."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING, Any

from forebay.errors import AlreadyExists, Error, Invalid, NotContainer, NotFound, _make
from forebay.files import BUFFER_BYTES, ObjectReader, ObjectWriter
from forebay.nodes import Node, Nodes, _parents

if TYPE_CHECKING:
    from forebay.client import Client

__all__ = ["Temporary", "is_temporary"]

#: Up to so many bytes a file is a key-value, which replaces what is there at once.
VALUE_BYTES = 32 << 20
#: Seconds after which what a process that died has left of a file goes.
DRAFT_SECONDS = 3600.0


def is_temporary(path: str) -> bool:
    """Whether a path is in the temporary namespace."""
    return path == "/tmp" or path.startswith("/tmp/")


class Temporary:
    """Files and values as files, containers as directories."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _nodes(self) -> Nodes:
        return self._client.nodes

    def info(self, path: str) -> dict[str, Any]:
        return _info(self._nodes.stat(path))

    def ls(self, path: str) -> list[dict[str, Any]]:
        node = self._nodes.stat(path)
        return [_info(inner) for inner in self._nodes.ls(path)] if node.container else [_info(node)]

    def open(self, path: str, mode: str, block_size: int | None, autocommit: bool) -> ObjectReader | ObjectWriter:
        if mode.startswith("r"):
            return ObjectReader(self._nodes._nodes.open(path), block_size or BUFFER_BYTES)
        creates = mode.startswith("x")
        if creates and self._nodes.exists(path):
            raise FileExistsError(17, os.strerror(17), path)
        begin = self._old(path) if mode.startswith("a") else b""
        return ObjectWriter(_Draft(self._nodes, path, begin, creates), path, autocommit=autocommit)

    def _old(self, path: str) -> bytes:
        opened = self._nodes._nodes.open(path) if self._nodes.exists(path) else None
        return b"" if opened is None else bytes(opened.read(0, opened.size))

    def version(self, path: str) -> str:
        """A text that is another one when the bytes are."""
        version: str = self._nodes._nodes.open(path).version
        return version

    def read(self, path: str, start: int | None, end: int | None) -> bytes:
        opened = self._nodes._nodes.open(path)
        first, last, _ = slice(start, end).indices(opened.size)
        return bytes(opened.read(first, max(0, last - first)))

    def put(self, path: str, data: Any, creates: bool = False) -> None:
        with self.open(path, "xb" if creates else "wb", None, True) as file:
            file.write(data)

    def copy(self, source: str, target: str) -> None:
        self.put(target, self.read(source, None, None))

    def mkdir(self, path: str, parents: bool) -> None:
        if path != "/tmp":
            self._nodes.mkdir(path, parents=parents)

    def makedirs(self, path: str, exist_ok: bool) -> None:
        if path != "/tmp":
            self._nodes.mkdir(path, parents=True, exist_ok=exist_ok)

    def remove(self, path: str, recursive: bool) -> None:
        self._nodes.rm(path, recursive=recursive)

    def move(self, source: str, target: str) -> None:
        _make_parents(self._nodes, target)
        self._nodes.rename(source, target)


class _Draft:
    """A file that is being written, which nobody sees before it is finished."""

    def __init__(self, nodes: Nodes, path: str, begin: bytes, creates: bool) -> None:
        self._nodes = nodes
        self._path = path
        #: Nothing is replaced that is there when it is finished.
        self._creates = creates
        self._draft: str | None = None
        self._gathered = bytearray(begin)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._gathered += view
        if len(self._gathered) > VALUE_BYTES:
            self._spill()
        return len(view)

    def _spill(self) -> str:
        draft = self._draft
        if draft is None:
            _make_parents(self._nodes, self._path)
            draft = self._draft = f"{self._path.rpartition('/')[0]}/.draft-{uuid.uuid4().hex}"
            self._nodes.create(draft, enumerable=False)
            self._nodes.lease(draft, DRAFT_SECONDS)
        self._nodes.append(draft, bytes(self._gathered))
        self._gathered.clear()
        return draft

    def finish(self) -> None:
        if self._draft is None and not self._creates and self._put():
            return
        try:
            self._take_place(self._spill())
        except (Error, FileExistsError):
            # What can't be deleted goes by its lease: why nothing was written is what there is to say.
            with contextlib.suppress(Error):
                self.discard()
            raise

    def _take_place(self, draft: str) -> None:
        """At once, and never in the place of a directory."""
        try:
            self._nodes._nodes.replace(draft, self._path.rpartition("/")[2], self._creates)
        except AlreadyExists:
            raise FileExistsError(17, os.strerror(17), self._path) from None
        except Error as error:
            # It is about the file that was to be written; nobody knows the draft.
            raise _make(type(error), error.message.replace(draft, self._path), self._path) from None

    def _put(self) -> bool:
        """Makes what is short a key-value, unless there is something else."""
        try:
            self._nodes.put(self._path, self._gathered)
        except NotFound:
            _make_parents(self._nodes, self._path)
            self._nodes.put(self._path, self._gathered)
        except NotContainer:
            raise
        except Invalid:
            return False
        return True

    def discard(self) -> None:
        draft, self._draft = self._draft, None
        if draft is not None:
            self._nodes.rm(draft)


def _make_parents(nodes: Nodes, path: str) -> None:
    for parent in _parents(path):
        nodes.create(parent, "directory", exist_ok=True)


def _info(node: Node) -> dict[str, Any]:
    return {"name": node.path, "type": "directory" if node.container else "file", "size": node.size, "node": node.type}
