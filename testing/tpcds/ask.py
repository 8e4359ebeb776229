"""A query, asked in a process of its own, and what came."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

import answers
from cluster import Cluster
from data import Data

# A query that takes longer hangs.
HANGS_SECS = 120.0


@dataclass
class Told:
    """One query's end."""

    number: int
    secs: float
    verdict: str
    detail: str = ""


def ask(cluster: Cluster, data: Data, number: int, *flags: str, settings: Sequence[str] = ()) -> Told:
    """Asks one query, with these settings of its session, and judges what came: `right`, `wrong`, `failed` or `hung`."""
    statements = "".join(f"set {setting}; " for setting in settings) + data.queries[number]
    began = time.monotonic()
    try:
        ran = cluster.command("sql", "--json", *flags, statements, timeout=HANGS_SECS)
    except subprocess.TimeoutExpired:
        return Told(number, time.monotonic() - began, "hung", f"no answer within {HANGS_SECS:.0f} s")
    secs = time.monotonic() - began
    if ran.returncode != 0:
        return Told(number, secs, "failed", ran.stderr.strip()[-600:])
    differs = answers.differ(data.answers[number], answers.of_json_lines(ran.stdout))
    return Told(number, secs, "wrong" if differs else "right", differs)
