"""The command line that comes with the package."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import forebay

COMMAND = Path(sys.executable).with_name("forebay")


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=100, **options)


def test_it_is_the_package_of_its_version():
    for command in ([str(COMMAND)], [sys.executable, "-m", "forebay"]):
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert said.stdout == f"forebay {forebay.__version__}\n"


def test_it_starts_at_once():
    started = time.monotonic()
    run("--version")
    assert time.monotonic() - started < 3


def test_exit_codes_and_messages_are_those_of_the_program(tmp_path):
    wrong = run("mount", "--no-such-flag")
    assert wrong.returncode == 2 and "--no-such-flag" in wrong.stderr and "Usage: forebay mount" in wrong.stderr
    away = run("status", "--coordinator", "127.0.0.1:1", "--token-file", str(tmp_path / "none"))
    assert away.returncode in (1, 2) and away.stderr.startswith("forebay: ")


def test_sql_without_a_cluster(tmp_path):
    said = run("sql", "--embedded", "--csv", "select 6 * 7 as answer", cwd=tmp_path)
    assert (said.stdout, said.returncode) == ("answer\n42\n", 0), said.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_starts_answers_and_ends_by_a_signal(tmp_path, how):
    process = subprocess.Popen(
        [COMMAND, "up", "--data-dir", "data", "--dram", "64MiB", "--disk", "64MiB", "--flight", "off", "--s3", "off"]
        + ["--coordinator-listen", "127.0.0.1:0", "--worker-listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout
    metrics = next(line.split()[1] for line in process.stdout if "/metrics" in line)
    with urllib.request.urlopen(metrics.replace("/metrics", "/healthz")) as health:
        assert health.read() == b"ok\n"
    process.send_signal(how)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_the_demo_starts_its_server_as_the_same_command(tmp_path):
    demo = run("demo", "--scale", "0.01", "--queries", "6", "--rounds", "1", "--json", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr
    assert json.loads(demo.stdout)["forebay_version"] == forebay.__version__


@pytest.mark.parametrize("argv", [["/usr/bin/forebay", "ls"], ["-m", "ls"]])
def test_ctrl_c_while_the_package_is_imported_ends_the_command_without_a_word(argv):
    # The signal comes when the first of its modules is looked for that is not the command's own.
    program = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "forebay.aio":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv, sys.orig_argv = sys.argv[1:], ["python", "-m", "forebay"]
import forebay
"""
    ended = subprocess.run([sys.executable, "-c", program, *argv], capture_output=True, text=True, timeout=100)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")
    # Any other program hears of it as ever.
    other = subprocess.run([sys.executable, "-c", program, "other.py"], capture_output=True, text=True, timeout=100)
    assert "KeyboardInterrupt" in other.stderr


def test_a_program_of_the_same_name_may_import_the_package_in_a_thread():
    program = """
import sys, threading

sys.argv = ["forebay"]
thread = threading.Thread(target=__import__, args=["forebay"])
thread.start()
thread.join()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_ctrl_c_ends_what_only_computes(tmp_path):
    # Of ten days: what is simulated by default is over within a second where it was compiled to be fast.
    process = subprocess.Popen(
        [COMMAND, "simulate", "mixapart", "--duration", "240h"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    time.sleep(1)
    assert process.poll() is None, "it computes"
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT
