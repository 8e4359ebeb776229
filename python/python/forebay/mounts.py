"""Mounts: names bound to URLs of shared storage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay import _forebay

__all__ = ["Mount", "Mounts", "AsyncMounts"]

#: Options of a mount; see :meth:`Mounts.add`.
OPTIONS = (
    "endpoint",
    "region",
    "profile",
    "anonymous",
    "virtual_host",
    "read_only",
    "validate",
    "bandwidth",
    "burst",
    "discover",
    "eager",
    "replicas",
    "hot_form",
    "young",
)


@dataclass(frozen=True, slots=True)
class Mount:
    """A name bound to a URL of shared storage."""

    #: The name; its objects are below ``/NAME/``.
    name: str
    #: ``s3://BUCKET/PREFIX``, ``gs://..``, ``az://..`` or ``file:///FOLDER``.
    url: str
    #: Options, with units as text: ``"1Gbit"``, ``"60s"``.
    options: Mapping[str, Any]

    @classmethod
    def _of(cls, record: Mapping[str, Any]) -> Mount:
        return cls(record["name"], record["url"], record["options"])


def url_of(place: str | os.PathLike[str]) -> str:
    """A folder's path is a URL too."""
    text = os.fspath(place)
    if "://" in text:
        return text
    folder = Path(text).expanduser().resolve()
    if not folder.is_dir():
        raise FileNotFoundError(f"{text}: is neither a URL, as in s3://BUCKET/PREFIX, nor a folder")
    return folder.as_uri()


def options_of(options: Mapping[str, Any]) -> str:
    unknown = set(options) - set(OPTIONS)
    if unknown:
        raise TypeError(f"no such option of a mount: {', '.join(sorted(unknown))}; there are {', '.join(OPTIONS)}")
    return json.dumps(dict(options))


class Mounts(Mapping[str, Mount]):
    """The mounts of a cluster, by name, as they are now: ``fb.mounts["lake"]``, ``for name in fb.mounts``."""

    def __init__(self, connection: _forebay.Connection) -> None:
        self._connection = connection

    def add(self, name: str, url: str | os.PathLike[str], **options: Any) -> Mount:
        """Binds a name to a URL of shared storage, or to a folder.

        Options: ``endpoint`` (the service's URL where it isn't the cloud's own), ``region``, ``profile`` (of credentials;
        the environment's otherwise), ``anonymous``, ``virtual_host``, ``read_only`` (True or False), ``validate``
        (``"always"``, ``"immutable"`` or ``"ttl:60s"``), ``bandwidth`` (``"1Gbit"``), ``burst`` (``"1MiB"``), ``discover``
        (``"30s"``), ``eager`` (True or False), ``replicas`` (a number), ``hot_form`` (``"table"`` or ``"raw"``), ``young``
        (``"2 for 7d"``: so many replicas of what is younger). Credentials are those of the workers' environment; they are no option.
        """
        return Mount._of(json.loads(self._connection.mount_add(name, url_of(url), options_of(options))))

    def set(self, name: str, **options: Any) -> Mount:
        """Changes options, from now on; ``None`` takes one back."""
        return Mount._of(json.loads(self._connection.mount_set(name, options_of(options))))

    def remove(self, name: str) -> None:
        """Removes a mount. Shared storage keeps its data."""
        self._connection.mount_remove(name)

    def _all(self) -> dict[str, Mount]:
        return {record["name"]: Mount._of(record) for record in json.loads(self._connection.mounts())}

    def __getitem__(self, name: str) -> Mount:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"<forebay.Mounts {', '.join(f'/{mount.name}/ = {mount.url}' for mount in self._all().values())}>"


class AsyncMounts:
    """As :class:`Mounts`, awaited."""

    def __init__(self, connection: _forebay.Connection) -> None:
        self._connection = connection

    async def add(self, name: str, url: str | os.PathLike[str], **options: Any) -> Mount:
        """Binds a name to a URL of shared storage, or to a folder."""
        return Mount._of(json.loads(await self._connection.mount_add(name, url_of(url), options_of(options), aio=True)))

    async def set(self, name: str, **options: Any) -> Mount:
        """Changes options, from now on; ``None`` takes one back."""
        return Mount._of(json.loads(await self._connection.mount_set(name, options_of(options), aio=True)))

    async def remove(self, name: str) -> None:
        """Removes a mount. Shared storage keeps its data."""
        await self._connection.mount_remove(name, aio=True)

    async def list(self) -> dict[str, Mount]:
        """All mounts, by name."""
        return {record["name"]: Mount._of(record) for record in json.loads(await self._connection.mounts(aio=True))}
