"""What Chromium's trace says of the main thread: its longest task, and the time that script and layout take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel", "v8.execute", "__metadata"]
_TASKS = {"RunTask", "ThreadControllerImpl::RunTask"}
_SCRIPT = {"EvaluateScript", "v8.compile", "FunctionCall", "EventDispatch", "TimerFire", "FireAnimationFrame", "RunMicrotasks", "V8.GC_MC_INCREMENTAL", "MinorGC", "MajorGC"}
_LAYOUT = {"UpdateLayoutTree", "RecalculateStyles", "Layout", "PrePaint"}


@dataclass(frozen=True)
class Busy:
    """Of the page's main thread, in milliseconds."""

    tasks: int
    longest_ms: float
    script_and_layout_ms: float


def busy(events: list[dict[str, Any]]) -> Busy:
    mains = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name" and event["args"].get("name") == "CrRendererMain"}
    # Processes that are kept for pages to come have a main thread too.
    shown = {frame.get("processId") for event in events if event["name"] == "TracingStartedInBrowser" for frame in event["args"]["data"].get("frames", [])}
    mains = {(pid, thread) for pid, thread in mains if pid in shown} or mains
    assert mains, "the trace names no main thread of a page"
    on_main = [event for event in _whole(events) if (event["pid"], event["tid"]) in mains]
    tasks = [event["dur"] for event in on_main if event["name"] in _TASKS]
    assert tasks, "the trace has no task of the main thread"
    work = [event for event in on_main if event["name"] in _SCRIPT | _LAYOUT]
    return Busy(len(tasks), max(tasks) / 1000, sum(_covered(work, main) for main in mains) / 1000)


def _whole(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those with an end: in one event, or in a begin and an end of their thread."""
    whole, begun = [], {}
    for event in sorted(events, key=lambda event: event.get("ts", 0)):
        thread = (event["pid"], event["tid"])
        if event["ph"] == "X":
            whole.append(event | {"dur": event.get("dur", 0)})
        elif event["ph"] == "B":
            begun.setdefault(thread, []).append(event)
        elif event["ph"] == "E" and begun.get(thread):
            start = begun[thread].pop()
            whole.append(start | {"dur": event["ts"] - start["ts"]})
    return whole


def _covered(work: list[dict[str, Any]], main: tuple[int, int]) -> float:
    """Microseconds in which any of it runs: layout that a script asks for is within that."""
    total, end = 0.0, 0.0
    for event in sorted((event for event in work if (event["pid"], event["tid"]) == main), key=lambda event: event["ts"]):
        last = event["ts"] + event["dur"]
        total += max(0.0, last - max(end, event["ts"]))
        end = max(end, last)
    return total
