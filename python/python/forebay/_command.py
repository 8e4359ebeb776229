"""Ctrl-C in the process of the command ``forebay``. The package imports this first: all else of it takes half a second."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading


def _is_command() -> bool:
    """Whether this process was started as the package's script, or by ``python -m forebay``, and this is its main thread."""
    if threading.current_thread() is not threading.main_thread():
        return False
    program = sys.argv[0] if getattr(sys, "argv", None) else ""
    if program == "-m":
        return ("-m", "forebay") in itertools.pairwise(sys.orig_argv)
    return os.path.basename(program) == "forebay"


if _is_command():
    # Ctrl-C and a reader that is gone end it as they end other programs: no Python runs meanwhile that could hear of them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
