"""What calls give: plain records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

__all__ = ["Entry", "Loaded", "Usage"]


@dataclass(frozen=True, slots=True)
class Entry:
    """An object, or a folder of objects."""

    #: ``/MOUNT/KEY``; a folder's ends with ``/``.
    path: str
    #: Whether it is a folder: a prefix that objects share.
    folder: bool
    #: Size in bytes; 0 for a folder.
    size: int
    #: Last modification; ``None`` for a folder.
    modified: datetime | None
    #: ETag, or what stands for it on file systems; ``None`` for a folder.
    version: str | None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @classmethod
    def _of(cls, entry: tuple[str, bool, int, int | None, str | None]) -> Entry:
        path, folder, size, modified_ms, version = entry
        modified = None if modified_ms is None else datetime.fromtimestamp(modified_ms / 1000, timezone.utc)
        return cls(path, folder, size, modified, version)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What :meth:`Client.load` did."""

    #: Objects that are in the tiers now.
    objects: int
    #: Their bytes.
    bytes: int
    #: Of these, bytes that were fetched for it; the rest was there.
    fetched_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How much is below a path, and how much of it is cached."""

    #: Objects below the path.
    objects: int
    #: Their bytes.
    bytes: int
    #: Of these, bytes in the tiers.
    cached_bytes: int
    #: Bytes in DRAM tiers, copies counted.
    dram_bytes: int
    #: Bytes in disk tiers, copies counted.
    disk_bytes: int
