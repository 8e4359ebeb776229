"""What schemathesis has to be told of bodies that it does not know: statements of SQL, and JSON lines."""

from __future__ import annotations

import json
from typing import Any

import schemathesis

_LINES = "application/x-ndjson"


@schemathesis.serializer("application/sql")
def statement(_context: schemathesis.SerializationContext, value: Any) -> bytes:
    """A text, as it is; what is none is some text too."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


@schemathesis.serializer(_LINES)
def lines(_context: schemathesis.SerializationContext, value: Any) -> bytes:
    """The schema is one of a line; an example has several, each with its end."""
    if isinstance(value, bytes):
        return value
    is_example = isinstance(value, str) and value.endswith("}\n")
    return (value if is_example else json.dumps(value) + "\n").encode(errors="surrogatepass")


@schemathesis.check
def each_line(_context: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case) -> None:
    """Each line of an answer is as the description has it."""
    if response.status_code != 200 or response.headers.get("content-type") != [_LINES]:
        return
    assert not response.content or response.content.endswith(b"\n"), "a part of an answer"
    described = case.operation.responses.find_by_status_code(200)
    validator = described.get_validator(_LINES, described.get_schema(_LINES).schema)
    for line in response.content.splitlines():
        assert validator.is_valid(json.loads(line)), f"{line!r} is no line of {case.operation.label}"
