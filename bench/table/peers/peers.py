"""Formats that are had through Python, on the table of the benchmark: peers.py CASE ROUNDS DIR [ARGUMENT ..]

One JSON line a peer: processor seconds (all threads, best of ROUNDS) without those of the consumer, and the file's bytes.
"""

import functools
import json
import os
import sys
import time

import lance.file
import numpy
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.orc
import vortex
import vortex.expr

pyarrow.set_cpu_count(1)
pyarrow.set_io_thread_count(1)
vortex.set_worker_threads(1)

case, rounds, folder, *arguments = sys.argv[1:]
BATCH = 65536
arrow_path, lance_path, vortex_path = (
    os.path.join(folder, name) for name in ("store_sales.arrow", "store_sales.lance", "store_sales.vortex")
)
# By peer: how it is compressed, and where it is.
orc = {
    "orc": ("uncompressed", os.path.join(folder, "store_sales.orc")),
    "orc snappy": ("snappy", os.path.join(folder, "store_sales.snappy.orc")),
    "orc zlib": ("zlib", os.path.join(folder, "store_sales.zlib.orc")),
}


def arrow_file():
    return pyarrow.ipc.open_file(pyarrow.memory_map(arrow_path))


def consume(batches):
    total = 0.0
    for batch in batches:
        for column in batch.columns:
            total += (pyarrow.compute.sum(column).as_py() or 0) + column.null_count
    return total


def once(path, write):
    if not os.path.exists(path):
        write(path + ".new")
        os.rename(path + ".new", path)


def write_lance(path):
    with lance.file.LanceFileWriter(path, arrow_file().schema) as writer:
        for batch in arrow_file().read_all().to_batches():
            writer.write_batch(batch)


def make():
    for compression, orc_path in orc.values():
        once(orc_path, lambda path: pyarrow.orc.write_table(arrow_file().read_all(), path, compression=compression))
    once(lance_path, write_lance)
    once(vortex_path, lambda path: vortex.io.write(arrow_file().read_all(), path))


def best(run):
    secs = []
    for round in range(int(rounds) + 1):
        start = time.process_time()
        batches = list(run())
        read = time.process_time() - start
        if round > 0:
            secs.append(read)
    return min(secs), consume(batches)


def streamed(run):
    """Reads and consumes batch by batch; the consumer's seconds on batches in memory are taken off."""
    secs = []
    for round in range(int(rounds) + 1):
        start = time.process_time()
        total = consume(run())
        if round > 0:
            secs.append(time.process_time() - start)
    held = list(run())
    consumer = []
    for _ in range(3):
        start = time.process_time()
        consume(held)
        consumer.append(time.process_time() - start)
    return max(min(secs) - min(consumer), 1e-9), total


def orc_batches(orc_path, columns=None):
    file = pyarrow.orc.ORCFile(orc_path)
    for stripe in range(file.nstripes):
        yield file.read_stripe(stripe, columns=columns)


def lance_reader(columns=None):
    return lance.file.LanceFileReader(lance_path, columns=columns)


def vortex_batches(**options):
    return vortex.open(vortex_path).to_arrow(**options)


def arrow_filtered(expression):
    return pyarrow.dataset.dataset(arrow_path, format="ipc").scanner(filter=expression, use_threads=False).to_batches()


make()
runs = {}
if case == "scan":
    for peer, (_, orc_path) in orc.items():
        runs[peer] = (streamed, orc_path, functools.partial(orc_batches, orc_path))
    runs["lance"] = (streamed, lance_path, lambda: lance_reader().read_all(batch_size=BATCH).to_batches())
    runs["vortex"] = (streamed, vortex_path, vortex_batches)
elif case == "projection":
    orc_path = orc["orc"][1]
    runs["orc"] = (streamed, orc_path, lambda: orc_batches(orc_path, arguments))
    runs["lance"] = (streamed, lance_path, lambda: lance_reader(arguments).read_all(batch_size=BATCH).to_batches())
    runs["vortex"] = (streamed, vortex_path, lambda: vortex_batches(projection=arguments))
elif case == "filter":
    column, least, most = arguments[0], int(arguments[1]), int(arguments[2])
    field, name = pyarrow.dataset.field(column), vortex.expr.column(column)
    width = 64 if column == "ss_ticket_number" else 32
    low, high = (vortex.expr.literal(vortex.int_(width, nullable=width == 32), bound) for bound in (least, most))
    runs["arrow ipc in pyarrow"] = (best, arrow_path, lambda: arrow_filtered((field >= least) & (field <= most)))
    runs["vortex"] = (best, vortex_path, lambda: vortex_batches(expr=(name >= low) & (name <= high)))
elif case == "take":
    rows = numpy.fromfile(arguments[0], dtype=numpy.uint64)
    indices = vortex.array(pyarrow.array(numpy.unique(rows)))
    runs["lance"] = (best, lance_path, lambda: lance_reader().take_rows(numpy.unique(rows).tolist()).to_batches())
    runs["vortex"] = (best, vortex_path, lambda: vortex_batches(indices=indices))
elif case == "size":
    paths = {peer: path for peer, (_, path) in orc.items()}
    for peer, path in (*paths.items(), ("lance", lance_path), ("vortex", vortex_path)):
        print(json.dumps({"peer": peer, "secs": 0.0, "bytes": os.path.getsize(path)}))

for peer, (measure, path, run) in runs.items():
    secs, total = measure(run)
    print(json.dumps({"peer": peer, "secs": secs, "sum": total, "bytes": os.path.getsize(path)}), flush=True)
