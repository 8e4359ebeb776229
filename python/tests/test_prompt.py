"""The prompt of `forebay sql`, on a terminal."""

from __future__ import annotations

import os
import pty
import select
import time

from test_flight_sql import BINARY, Up


def until(terminal: int, wanted: str, seconds: float = 30) -> str:
    """What the terminal shows, up to some words."""
    shown, began = "", time.monotonic()
    while wanted not in shown:
        left = began + seconds - time.monotonic()
        assert left > 0 and select.select([terminal], [], [], left)[0], f"{wanted!r} is not shown: {shown}"
        shown += os.read(terminal, 65536).decode(errors="replace")
    return shown


def test_ctrl_c_gives_up_the_statement_that_runs_and_not_the_prompt(tmp_path):
    up = Up(tmp_path)
    command = [str(BINARY), "sql", "--coordinator", up.told["coordinator"]]
    process, terminal = pty.fork()
    if process == 0:
        os.execve(command[0], command, os.environ | {"HOME": str(tmp_path), "TERM": "xterm"})
    try:
        until(terminal, "forebay> ")
        for _ in range(2):
            os.write(terminal, b"select count(*) as slow from generate_series(1, 1000000) a, generate_series(1, 1000000) b where a.value * b.value = 7;\n")
            time.sleep(2)
            os.write(terminal, b"\x03")
            until(terminal, "given up")
            until(terminal, "forebay> ")
        os.write(terminal, b"select 6 * 7 as answer;\n")
        until(terminal, "42")
        # While somebody types it gives up what is typed.
        os.write(terminal, b"select nothing")
        until(terminal, "nothing")
        os.write(terminal, b"\x03")
        until(terminal, "forebay> ")
        # The statement that was last is at hand.
        os.write(terminal, b"\x1b[A\n")
        until(terminal, "42")
        os.write(terminal, b"\\q\n")
        began = time.monotonic()
        while (ended := os.waitpid(process, os.WNOHANG)) == (0, 0):
            assert time.monotonic() - began < 30, "the prompt did not end"
            time.sleep(0.05)
        process = 0
        assert ended[1] == 0
    finally:
        if process:
            os.kill(process, 9)
            os.waitpid(process, 0)
        os.close(terminal)
        up.stop()
