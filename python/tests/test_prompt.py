"""The prompt of `forebay sql`, on a terminal."""

from __future__ import annotations

import os
import pty
import select
import time
from pathlib import Path

from test_flight_sql import BINARY, Up

SLOW = "select count(*) as slow from generate_series(1, 30000) a, generate_series(1, 30000000) b where a.value * b.value = 7;"


class Prompt:
    """`forebay sql` as somebody sees it."""

    def __init__(self, folder: Path, coordinator: str) -> None:
        command = [str(BINARY), "sql", "--coordinator", coordinator]
        self.shown = ""
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.execve(command[0], command, os.environ | {"HOME": str(folder), "TERM": "xterm"})

    def types(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def shows(self, wanted: str) -> None:
        """Waits for some words after those that were waited for before."""
        began = time.monotonic()
        while wanted not in self.shown:
            left = began + 30 - time.monotonic()
            assert left > 0 and select.select([self.terminal], [], [], left)[0], f"{wanted!r} is not shown: {self.shown}"
            self.shown += os.read(self.terminal, 65536).decode(errors="replace")
        self.shown = self.shown[self.shown.index(wanted) + len(wanted) :]

    def end(self) -> int | None:
        """What it ended with by itself within half a minute."""
        began, ended = time.monotonic(), (0, 0)
        while ended == (0, 0) and time.monotonic() - began < 30:
            ended = os.waitpid(self.process, os.WNOHANG)
            time.sleep(0.05)
        return ended[1] if ended != (0, 0) else None


def test_ctrl_c_gives_up_the_statement_that_runs_and_not_the_prompt(tmp_path):
    up = Up(tmp_path)
    prompt = Prompt(tmp_path, up.told["coordinator"])
    ended = None
    try:
        prompt.shows("forebay> ")
        for _ in range(2):
            prompt.types(SLOW + "\n")
            time.sleep(2)
            prompt.types("\x03")
            prompt.shows("given up")
            prompt.shows("forebay> ")
        prompt.types("select 6 * 7000001 as answer;\n")
        prompt.shows("42000006")
        prompt.shows("forebay> ")
        # While somebody types it gives up what is typed.
        prompt.types("select nothing")
        time.sleep(1)
        prompt.types("\x03")
        prompt.shows("forebay> ")
        # The statement that was last is at hand.
        prompt.types("\x1b[A\n")
        prompt.shows("42000006")
        prompt.shows("forebay> ")
        prompt.types("\\q\n")
        ended = prompt.end()
        assert ended == 0
    finally:
        if ended is None:
            os.kill(prompt.process, 9)
            os.waitpid(prompt.process, 0)
        os.close(prompt.terminal)
        up.stop()
