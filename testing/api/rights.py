"""Which token may ask what: the table of docs/api.md, by which no answer may be more than its token's right."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from urllib.parse import parse_qs, urlsplit

_READ, _WRITE, _ADMIN = 1, 2, 3
_RANKS = {"read": _READ, "write": _WRITE, "admin": _ADMIN}
_OF_THE_CLUSTER = {"status", "segments", "filled", "jobs", "tasks", "transfers", "events"}
# What is told of a token's own, or decided by what a statement reads.
_OPEN = {("GET", "openapi.json"), ("GET", "savings"), ("GET", "load"), ("DELETE", "load"), ("POST", "sql"), ("POST", "sql/rows")}
_ORDERS = {"shards/pin", "shards/freeze", "shards/ack", "shards/forgo"}
# Sent as questions, in a body.
_QUESTIONS = {("POST", "shards/batch"), ("POST", "load")}


@dataclass(frozen=True)
class Token:
    """`read`, `write` or `admin`, in these mounts or, where there are none, in all."""

    right: str
    mounts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "-".join([self.right, *self.mounts])

    @property
    def flags(self) -> list[str]:
        return [f"--{self.right}", *(word for mount in self.mounts for word in ("--mount", mount))]

    def text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of(text: str) -> Token:
        read = json.loads(text)
        return Token(read["right"], tuple(read["mounts"]))

    def changes(self) -> bool:
        return _RANKS[self.right] > _READ

    def may(self, method: str, url: str) -> bool:
        """Whether a request may be answered as it asks for."""
        split = urlsplit(url)
        path, asked = split.path.removeprefix("/api/v1/"), parse_qs(split.query)
        method, rank = "GET" if method == "HEAD" else method, _RANKS[self.right]
        if (method, path) in _OPEN:
            return True
        if path in _OF_THE_CLUSTER:
            return not self.mounts
        if path == "tokens":
            return not self.mounts and rank >= _ADMIN
        needed = _READ if method == "GET" or (method, path) in _QUESTIONS else _ADMIN if path in _ORDERS else _WRITE
        named = ["/tmp"] if path == "nodes" else asked.get("dataset", asked.get("path", []))
        in_mounts = not self.mounts or all(name.split("/")[1:2] == [mount] for name in named for mount in self.mounts)
        return rank >= needed and in_mounts


# The first is asked everything; the others' answers are looked at for what they may not.
TOKENS = [
    Token("admin"),
    *(Token(right, ("lake",)) for right in ("admin", "write", "read")),
    *(Token(right) for right in ("write", "read")),
    *(Token("read", (mount,)) for mount in ("other", "tmp")),
]
