"""Objects as files."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING, Any, Protocol

from forebay.errors import AlreadyExists, Conflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

    from forebay import _forebay

__all__ = ["ObjectReader", "ObjectWriter"]

#: Bytes that a reader takes at once for small reads.
BUFFER_BYTES = 256 << 10


class Sink(Protocol):
    """What takes an object's bytes: nothing is seen before ``finish``."""

    def write(self, data: Any) -> Any: ...
    def finish(self) -> Any: ...
    def discard(self) -> None: ...


class _RawReader(io.RawIOBase):
    """One version of an object, unbuffered."""

    def __init__(self, opened: _forebay.Object | _forebay.NodeObject) -> None:
        self._object = opened
        self._at = 0
        self.size = opened.size
        self.name = opened.path
        self.mode = "rb"

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}.get(whence)
        if base is None:
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        if base + offset < 0:
            raise ValueError(f"{self.name}: position {base + offset} is before the beginning")
        self._at = base + offset
        return self._at

    def take(self, length: int) -> memoryview:
        """The next bytes, where they are."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        data = memoryview(self._object.read(self._at, length))
        self._at += len(data)
        return data

    def readinto(self, into: Buffer) -> int:
        into = memoryview(into).cast("B")
        data = self.take(len(into))
        into[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return bytes(self.take(max(0, self.size - self._at)))


class ObjectReader(io.BufferedReader):
    """An object, opened for reading: ``io.BufferedReader`` with :meth:`read_buffer`, which copies nothing.

    All reads are of the version that was current when the file was opened.
    """

    raw: _RawReader

    def __init__(self, opened: _forebay.Object | _forebay.NodeObject, buffer_size: int = BUFFER_BYTES) -> None:
        super().__init__(_RawReader(opened), buffer_size)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.raw.size

    @property
    def version(self) -> str:
        """ETag of the version that is read."""
        return self.raw._object.version

    def read_buffer(self, size: int | None = -1) -> memoryview:
        """As ``read``, without a copy on the worker's host: the view points into the worker's memory, which holds the bytes
        as long as the view is alive. PyArrow calls this by itself."""
        at = self.tell()
        left = max(0, self.size - at)
        self.raw.seek(at)
        data = self.raw.take(left if size is None or size < 0 else min(size, left))
        self.seek(at + len(data))
        return data

    def read(self, size: int | None = -1, /) -> bytes:
        # One copy rather than two for what is larger than the buffer.
        if size is None or size < 0 or size > BUFFER_BYTES:
            return bytes(self.read_buffer(size))
        return super().read(size)

    def __reduce__(self) -> Any:
        raise TypeError("an open file stays in its process: give the client and the path instead")


class ObjectWriter(io.RawIOBase):
    """An object, opened for writing. Nobody sees it before :meth:`close`, which returns when shared storage has it.

    Leaving a ``with`` block by an exception, :meth:`discard`, or forgetting the file leaves nothing behind.
    """

    def __init__(self, writer: Sink, path: str, creates: bool = False, autocommit: bool = True) -> None:
        self._writer: Sink | None = writer
        self._creates = creates
        self._autocommit = autocommit
        self._written = 0
        self.name = path
        self.mode = "wb"

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Buffer) -> int:
        if self._writer is None or self.closed:
            raise ValueError("I/O operation on closed file")
        written: int = self._writer.write(data)
        self._written += written
        return written

    def close(self) -> None:
        """Makes what was written the object; within an fsspec transaction :meth:`commit` does."""
        if self.closed:
            return
        try:
            if self._autocommit:
                self.commit()
        finally:
            super().close()

    def commit(self) -> None:
        """Makes what was written the object."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            writer.finish()
        except Conflict as error:
            if self._creates:
                raise AlreadyExists(error.message, error.path) from None
            raise

    def discard(self) -> None:
        """Gives it up: nothing is written."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.discard()
        super().close()

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if getattr(self, "_writer", None) is not None:
            warnings.warn(f"{self.name}: was not closed, and is not written", ResourceWarning, source=self)
            self.discard()

    def __reduce__(self) -> Any:
        raise TypeError("an open file stays in its process: give the client and the path instead")


class _LeftOpen:
    """A writer that is not closed by who was given it."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def close(self) -> None:
        pass


class CompressedWriter:
    """A compressor and the :class:`ObjectWriter` that it writes to, which is closed and given up with it."""

    def __init__(self, compress: Callable[[Any], Any], writer: ObjectWriter) -> None:
        self._writer = writer
        self.name = writer.name
        self._compressor: Any = None
        # Some close what they were given with themselves, which would make a part the object when it is given up.
        self._compressor = compress(_LeftOpen(writer))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compressor, name)

    @property
    def closed(self) -> bool:
        return self._writer.closed

    def close(self) -> None:
        """Writes what the compressor still has, and makes it all the object."""
        if not self.closed:
            self._compressor.close()
            self._writer.close()

    def discard(self) -> None:
        """Gives it up: nothing is written."""
        # It would end by itself later, and miss the writer.
        with contextlib.suppress(Exception):
            self._compressor.close()
        self._writer.discard()

    def __enter__(self) -> CompressedWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn(f"{self.name}: was not closed, and is not written", ResourceWarning, source=self)
            self.discard()


class TextWriter(io.TextIOWrapper):
    """Text over a writer that is given up when its ``with`` block ends by an exception, or when it is forgotten."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None:
            self.discard()
        else:
            self.close()

    def discard(self) -> None:
        """Gives it up: nothing is written."""
        writer: Any = self.buffer
        writer.discard()

    def __del__(self) -> None:
        # Python would close it, and so write a part.
        try:
            is_open = not self.closed
        except (AttributeError, ValueError):
            # It was never made whole, or has let go of what it wrote to.
            return
        if is_open:
            warnings.warn(f"{self.name}: was not closed, and is not written", ResourceWarning, source=self)
            self.discard()


def parse_mode(mode: str) -> tuple[str, bool]:
    """Direction (``r``, ``w`` or ``x``) and whether it is text."""
    direction, rest = mode[:1], mode[1:]
    if direction not in ("r", "w", "x") or sorted(rest) not in ([], ["b"], ["t"]):
        raise ValueError(
            f"mode {mode!r}: objects are read (r), written whole (w) or created (x), as text (t) or bytes (b); "
            "to append, read the object and write it anew"
        )
    return direction, "b" not in rest


def wrap(opened: ObjectReader | ObjectWriter, text: bool, encoding: str | None, newline: str | None) -> Any:
    """The file, as text where that was asked for."""
    if not text:
        return opened
    encoding = encoding or "utf-8"
    if isinstance(opened, ObjectWriter):
        return TextWriter(opened, encoding=encoding, newline=newline, write_through=True)
    return io.TextIOWrapper(opened, encoding=encoding, newline=newline)
