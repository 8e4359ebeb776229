"""Other processes: forks, pickles, Dask workers, Ray tasks."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest


def _read(fb, path):
    return bytes(fb.read(path))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_client_works_in_child_processes(fb, lake, start):
    (lake / "child").write_bytes(b"for the children")
    assert fb.read("/lake/child") == b"for the children"
    with multiprocessing.get_context(start).Pool(2) as pool:
        assert pool.starmap(_read, [(fb, "/lake/child")] * 8) == [b"for the children"] * 8


def test_what_was_open_before_a_fork_says_so(server, lake):
    (lake / "forked").write_bytes(b"x" * 1000)
    program = f"""
import os, sys, forebay
fb = forebay.connect({server!r})
file, rows = fb.open("/lake/forked"), fb.sql("select 1 as one")
view = fb.read("/lake/forked")
writer = fb.open("/lake/never", "wb")
child = os.fork()
if child == 0:
    for use in (file.read, rows.to_arrow, lambda: writer.write(b"x")):
        try:
            use()
        except forebay.Closed as error:
            assert "fork" in str(error), error
        else:
            os._exit(3)
    assert bytes(view) == b"x" * 1000
    assert fb.sql("select 2 as two").to_arrow().to_pylist() == [{{"two": 2}}]
    assert fb.read("/lake/forked") == b"x" * 1000
    del file, rows, view, writer
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert file.read() == b"x" * 1000 and rows.to_arrow().to_pylist() == [{{"one": 1}}]
writer.discard()
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], check=True, timeout=60)


def test_forks_between_calls(server, lake):
    (lake / "often").write_bytes(b"x" * 1000)
    program = f"""
import os, signal, forebay
fb = forebay.connect({server!r})
def use():
    assert fb.sql("select 2 as two").to_arrow().to_pylist() == [{{"two": 2}}]
    assert fb.read("/lake/often") == b"x" * 1000
for _ in range(20):
    use()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        use()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
use()
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], check=True, timeout=120)


def test_forks_of_several_threads_and_of_children(server, lake):
    (lake / "together").write_bytes(b"x" * 1000)
    program = f"""
import os, signal, threading, forebay
fb = forebay.connect({server!r})
def use():
    assert fb.read("/lake/together") == b"x" * 1000
def fork(then):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        then()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
done = []
def forks():
    for _ in range(20):
        fork(lambda: None)
    done.append(True)
use()
threads = [threading.Thread(target=forks) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(done) == 4
use()
# A child that has used nothing yet forks, and one that has.
fork(lambda: fork(use))
fork(lambda: (use(), fork(use), use()))
use()
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], check=True, timeout=120)


def test_children_are_not_taken_for_one_client(server):
    program = f"""
import os, signal, uuid, forebay
fb = forebay.connect({server!r})
folder = f"/tmp/{{uuid.uuid4()}}"
fb.nodes.mkdir(folder)
# Each begins with the chance that its parent had left, and the same calls.
for name in ("a", "b"):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        fb.nodes.put(f"{{folder}}/{{name}}", name.encode())
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, name
assert [bytes(fb.nodes.get(f"{{folder}}/{{name}}")) for name in ("a", "b")] == [b"a", b"b"]
fb.nodes.rm(folder, recursive=True)
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], check=True, timeout=60)


def test_a_hook_of_another_package_may_use_the_client_while_the_process_forks(server, lake):
    (lake / "hooked").write_bytes(b"x" * 1000)
    program = f"""
import os
# Known before the package's own, and so called when its threads stand still.
os.register_at_fork(before=lambda: fb.read("/lake/hooked"))
import forebay
fb = forebay.connect({server!r})
child = os.fork()
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert fb.read("/lake/hooked") == b"x" * 1000
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], check=True, timeout=60)


def test_dask_workers(fb, sales, address):
    import dask.dataframe
    from dask.distributed import Client, LocalCluster

    environment = {"FOREBAY_COORDINATOR": address}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, env=environment) as cluster,
        Client(cluster) as dask_client,
    ):
        frame = dask.dataframe.read_parquet("forebay://lake/sales/")
        assert frame.npartitions == 3
        assert int(frame.n.sum().compute()) == sum(range(3000))
        # A client in a task is the same cluster, in the worker's process.
        lengths = dask_client.gather(dask_client.map(lambda at, fb: (os.getpid(), len(fb.read(f"/lake/sales/part-{at}.parquet"))), [0, 1, 2], fb=fb))
        assert [length for _, length in lengths] == [fb.stat(f"/lake/sales/part-{at}.parquet").size for at in range(3)]
        assert os.getpid() not in {process for process, _ in lengths}
        frame.to_parquet("forebay://lake/dask-out/")
    assert fb.sql("select count(*) as c from '/lake/dask-out/'").to_arrow().to_pylist() == [{"c": 3000}]


def test_ray_tasks(fb, sales):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:

        @ray.remote
        def total(fb, at):
            return fb.sql(f"select sum(n) as s from '/lake/sales/part-{at}.parquet'").to_arrow()["s"][0].as_py()

        assert sum(ray.get([total.remote(fb, at) for at in range(3)])) == sum(range(3000))
        dataset = ray.data.read_parquet("/lake/sales/", filesystem=fb.fs)
        assert dataset.count() == 3000
    finally:
        ray.shutdown()
