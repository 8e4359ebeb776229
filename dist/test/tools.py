"""What the tests share: where the packages are, commands whose failure shows what they said, and processes that answer."""

import contextlib
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = pathlib.Path(os.environ["DIST_OUT"]).resolve()
HELM = os.environ["DIST_HELM"]
# How long a process may take to answer: a machine that compiles beside the tests is slow.
ANSWER_SECS = 60
# As Kubernetes' probes, which believe any.
ANY_CERTIFICATE = ssl._create_unverified_context()  # noqa: SLF001



def may_mount():
    """Whether a root file system can be put together here: as root, in no container that takes that away."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode == 0


needs_root = unittest.skipUnless(may_mount(), "it wants a root file system of its own, which takes root and mounts")


def package(ending):
    """The one package with this ending."""
    found = sorted(OUT.glob(f"*{ending}"))
    assert len(found) == 1, f"{OUT} should have one *{ending}, not {found}"
    return found[0]


def told(*command, env=None, **options):
    """What a command prints; it has to go well."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env, **options)
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def clean(**variables):
    """An environment in which nothing of the caller's says how Forebay runs."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}


@contextlib.contextmanager
def folder():
    """A folder that goes away, whoever its files belong to."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="forebay-dist-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def running(command, **options):
    """A process, which has to stop in order with exit code 0 at SIGTERM. What it says is shown when something fails."""
    # The last line of a script is the program.
    name = str(command[-1]).strip().rsplit("\n", 1)[-1]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT, **options)
        process.log = lambda: log.seek(0) or log.read()
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=ANSWER_SECS)
            assert code == 0, f"{name} stopped with {code}:\n{process.log()}"
        except BaseException:
            print(f"--- {name}\n{process.log()}---")
            raise
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def answer(url, process):
    """The body that a URL answers with, as soon as there is one."""
    until = time.monotonic() + ANSWER_SECS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5, context=ANY_CERTIFICATE) as response:
                return response.read().decode()
        except (urllib.error.URLError, OSError) as error:
            code = process.poll()
            assert code is None, f"{process.args} ended with {code}:\n{process.log()}"
            assert time.monotonic() < until, f"{url}: {error}\n{process.log()}"
            time.sleep(0.1)
