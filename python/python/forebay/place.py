"""Where a cluster is, and how its tiers are sized: what callers write, as the native half wants it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from forebay import _forebay
from forebay.errors import Invalid

__all__ = ["Place"]

DEFAULT_ADDRESS = "127.0.0.1:7400"

_UNITS = {"": 1, "B": 1}
for _exponent, _letter in enumerate("KMGT", start=1):
    _UNITS[f"{_letter}B"] = _UNITS[f"{_letter.lower()}B"] = 1000**_exponent
    _UNITS[f"{_letter}iB"] = 1024**_exponent


def size_of(size: int | str | None) -> int | None:
    """Bytes of ``"64MiB"``, ``"10GB"`` or a number."""
    if size is None or isinstance(size, int):
        return size
    digits = size.rstrip("BKMGTikmgt ")
    unit = size[len(digits) :].strip()
    try:
        return round(float(digits) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"{size!r} is no size: write a number with a unit, as in '64MiB' or '10GB'") from None


#: Files in PEM, each also named by a variable of the environment.
_TLS = ("tls_ca", "tls_cert", "tls_key")


class Place:
    """A cluster by its address. Goes through ``pickle``: what comes out connects by itself, at first use."""

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        tls_ca: str | os.PathLike[str] | None = None,
        tls_cert: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        in_place: bool = True,
        memory: int | str | None = None,
        partitions: int | None = None,
    ) -> None:
        if address is not None and not isinstance(address, str):
            raise TypeError(f"an address is text, HOST:PORT, not {type(address).__name__}")
        self.address = _checked((address or os.environ.get("FOREBAY_COORDINATOR") or DEFAULT_ADDRESS).removeprefix("forebay://"))
        # Only what was given travels in a pickle; what is in the environment is there in the other process too.
        self._given: dict[str, Any] = {
            "token": token,
            **{name: None if path is None else os.fspath(path) for name, path in zip(_TLS, (tls_ca, tls_cert, tls_key))},
            "in_place": in_place,
            "memory": size_of(memory),
            "partitions": partitions,
        }

    def connection(self) -> _forebay.Connection:
        """A connection, made at first use."""
        given = dict(self._given)
        given["token"] = given["token"] or token_of_environment()
        for name in _TLS:
            given[name] = given[name] or os.environ.get(f"FOREBAY_{name.upper()}")
        return _forebay.Connection(self.address, **given)

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """What makes the same place again."""
        return self.address, {name: value for name, value in self._given.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.arguments() == other.arguments()

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return f"Place({self.address!r})"


def _checked(address: str) -> str:
    """The address, or those of a coordinator and its standbys with commas between."""
    for each in address.split(","):
        host, _, port = each.rpartition(":")
        if not host or "/" in host or not port.isdigit():
            raise Invalid(f"{each!r} is no address of a coordinator: write HOST:PORT, as in 'localhost:7400'")
    return address


def token_of_environment() -> str | None:
    """The cluster's token, where the environment has it: ``FOREBAY_TOKEN``, or the file of ``FOREBAY_TOKEN_FILE``."""
    if token := os.environ.get("FOREBAY_TOKEN"):
        return token.strip()
    if file := os.environ.get("FOREBAY_TOKEN_FILE"):
        return Path(file).read_text().strip()
    return None
