"""The chart's pods, started from the image with what the chart gives them, are a cluster that answers."""

import contextlib
import unittest
import urllib.request

from chart import NAMESPACE, named, of_kind, pods, rendered
from pod import Cluster, Pod
from test_image import unpack
from tools import folder, needs_root, package

KEYS = '[[key]]\nid = "reports"\nsecret = "a secret of the reports"\nmounts = ["lake"]\nread-only = true\n'
VALUES = """
worker: {{ dram: 64MiB, disk: 256MiB, shardBytes: 64MiB }}
executor: {{ enabled: true, slots: 2, sqlMemory: 256MiB, sqlSpill: 256MiB }}
gateway: {{ enabled: true, replicas: 1, keysSecret: s3-keys, s3Anonymous: read }}
storage:
  folders:
    - {{ name: lake, mountPath: /mnt/lake, readOnly: true, volume: {{ hostPath: {{ path: {0} }} }} }}
config: {{ lease: 10s }}
"""


@needs_root
class Pods(unittest.TestCase):
    def test_the_charts_pods_are_a_cluster_that_answers_sql_and_s3(self):
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(folder())
            place.chmod(0o755)
            lake = place / "lake"
            lake.mkdir()
            (lake / "sales.csv").write_text("region,amount\nnorth,3\nsouth,4\nnorth,5\n")
            (place / "values.yaml").write_text(VALUES.format(lake))
            objects = rendered(place / "values.yaml")
            (place / "image").mkdir()
            settings = unpack(package("-image.tar"), place / "image")
            cluster = Cluster(objects, {"s3-keys": {"s3-keys.toml": KEYS}}, place / "image", settings, place)

            for role in ("coordinator", "scheduler", "worker", "gateway"):
                name = f"lake-forebay-{role}"
                _, spec = pods(objects)[name]
                address = cluster.address(f"{name}.{NAMESPACE}.svc")
                stack.enter_context(Pod(cluster, name, spec, address).started())

            (test,) = of_kind(objects, "Pod")
            client = Pod(cluster, "test", test["spec"], "127.0.1.100")
            (container,) = client.spec["containers"]
            self.assertRegex(client.run(container), r"127\.0\.1\.3:7401 +node-1 +live")
            client.run(container, "mount", "add", "lake", "file:///mnt/lake", "--read-only")
            # However little it reads.
            container.setdefault("env", []).append({"name": "FOREBAY_DISTRIBUTE_FROM", "value": "0B"})
            query = "select region, sum(amount) as total from '/lake/sales.csv' group by region order by region"
            self.assertEqual(client.run(container, "sql", "--csv", query), "region,total\nnorth,8\nsouth,4\n")
            # It went through the scheduler, to the executor beside the worker.
            self.assertRegex(client.run(container, "jobs"), r"(?i)done|finished|succe")

            _, gateway = pods(objects)["lake-forebay-gateway"]
            self.assertEqual(named(objects, "Service", "lake-forebay-gateway")["spec"]["ports"][0]["port"], 7490)
            with urllib.request.urlopen("http://127.0.1.4:7490/lake/sales.csv", timeout=20) as response:
                self.assertEqual(response.read(), (lake / "sales.csv").read_bytes())
