"""The command ``forebay``, also as ``python -m forebay``."""

from __future__ import annotations

import signal
import sys

from forebay import _forebay


def main() -> int:
    """Runs one command, and gives the exit code of the process."""
    # As `_command` has it, under whatever name this is started.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _forebay.command([sys.executable, "-m", "forebay"], ["forebay", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
