"""What can go wrong, sorted by what the caller must do.

Every exception is an :class:`Error` with the path it is about in ``path`` (``None`` when it is about none). Where Python
has a class for the same thing the exception is one of that class too: ``except FileNotFoundError`` works.
"""

from __future__ import annotations

import asyncio
import errno as _errno
from typing import Any

__all__ = [
    "Error",
    "NotFound",
    "Denied",
    "Conflict",
    "AlreadyExists",
    "NotEmpty",
    "Invalid",
    "NotContainer",
    "Corrupt",
    "Retry",
    "NoSpace",
    "DataLost",
    "Closed",
    "Internal",
]


class Error(Exception):
    """Base of all exceptions of Forebay. ``str()`` says what failed, on which path, and what to do."""

    #: The path that it is about, as in ``/lake/sales/x.parquet``.
    path: str | None
    #: The kind in one word, as in the command line and in logs.
    kind: str = "error"

    def __init__(self, message: str = "", path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (type(self), self.message, self.path)


class NotFound(Error, FileNotFoundError):
    """The thing named does not exist."""

    kind = "not found"


class Denied(Error, PermissionError):
    """The caller may not do this: credentials, token, read-only mount."""

    kind = "denied"


class Conflict(Error):
    """The world has changed since the caller looked: the object has another version now. Look again, then decide."""

    kind = "conflict"


class AlreadyExists(Conflict, FileExistsError):
    """There is an object already where one was to be created."""


class NotEmpty(Conflict, OSError):
    """A container of the temporary namespace holds nodes: delete them first, or with ``recursive``."""


class Invalid(Error, ValueError):
    """The request can never succeed as it is."""

    kind = "invalid"


class NotContainer(Invalid, NotADirectoryError):
    """A part of the path is a file or a value, which holds no nodes."""


class Corrupt(Error, OSError):
    """Bytes do not verify and there is no other copy to take them from."""

    kind = "corrupt"


class Retry(Error, ConnectionError):
    """The same call may succeed later: a peer is away, a limit is reached, a deadline has passed."""

    kind = "retry"


class NoSpace(Retry):
    """Workers have no room for more temporary data; nothing was changed."""


class DataLost(Error, OSError):
    """Temporary data was lost with its worker; compute it again."""

    kind = "data lost"


class Closed(Error, RuntimeError):
    """What was used is closed, or belongs to another process."""

    kind = "closed"


class Internal(Error, RuntimeError):
    """A defect of Forebay or an unexpected answer of the system below."""

    kind = "internal"


_KINDS: dict[str, type[Error]] = {
    kind.kind: kind for kind in (NotFound, Denied, Conflict, Invalid, Corrupt, Retry, DataLost, Closed, Internal)
}
#: The kinds of errors of temporary nodes.
_NODE_KINDS: dict[str, type[Error]] = {
    "NotFound": NotFound,
    "Exists": AlreadyExists,
    "NotEmpty": NotEmpty,
    "NotContainer": NotContainer,
    "WrongType": Invalid,
    "Invalid": Invalid,
    "NoSpace": NoSpace,
    "DataLost": DataLost,
    "Retry": Retry,
    "Denied": Denied,
}
_ERRNO = {
    NotFound: _errno.ENOENT,
    Denied: _errno.EACCES,
    AlreadyExists: _errno.EEXIST,
    NotEmpty: _errno.ENOTEMPTY,
    NotContainer: _errno.ENOTDIR,
    NoSpace: _errno.ENOSPC,
    Corrupt: _errno.EIO,
    DataLost: _errno.EIO,
}


def _of_kind(kind: str, message: str, path: str | None) -> Error:
    """The exception of a kind; called by the native half."""
    return _make(_KINDS.get(kind, Internal), message, path)


def _of_node(kind: str, message: str, path: str) -> Error:
    """The exception of a temporary node; called by the native half."""
    message = message if path in message else f"{path}: {message}"
    return _make(_NODE_KINDS.get(kind, Internal), message, path)


def _make(of: type[Error], message: str, path: str | None) -> Error:
    error = of(message, path)
    if isinstance(error, OSError):
        error.errno = _ERRNO.get(of)
        error.strerror = message
        error.filename = path
    return error


def _settle(promise: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    """Ends an awaitable; called by the native half on the event loop's thread."""
    if promise.done():
        return
    if error is None:
        promise.set_result(answer)
    else:
        promise.set_exception(error)
