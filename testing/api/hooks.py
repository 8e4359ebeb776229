"""What schemathesis has to be told of bodies that it does not know, statements of SQL and JSON lines, and of who asks."""

from __future__ import annotations

import json
import os
from typing import Any

import schemathesis
from rights import Token

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


@schemathesis.check
def no_more_than_its_right(_context: schemathesis.CheckContext, response: schemathesis.Response, _case: schemathesis.Case) -> None:
    """Nothing is done or shown for a token that may not have it done or see it, whatever else is asked."""
    asked, token = response.request, Token.of(os.environ["FOREBAY_TOKEN_IS"])
    # A check of schemathesis asks without a token, or with a guess.
    if not 200 <= response.status_code < 300 or asked.headers.get("Authorization") != f"Bearer {os.environ['FOREBAY_TOKEN']}":
        return
    assert token.may(asked.method, asked.url), f"{asked.method} {asked.url} is answered to a token that is {token.name}"
