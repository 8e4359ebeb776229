"""Fetches the jars of Hadoop's s3a that go with the PySpark that is installed: `spark-jars.py FOLDER`."""

import pathlib
import re
import shutil
import sys
import tempfile
import urllib.request

import pyspark
from pyspark.sql import SparkSession

CENTRAL = "https://repo1.maven.org/maven2/org/apache/hadoop"
folder = pathlib.Path(sys.argv[1])
jars = pathlib.Path(pyspark.__file__).parent / "jars"
hadoop = next(re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name)[1] for jar in jars.glob("hadoop-client-api-*.jar"))
with urllib.request.urlopen(f"{CENTRAL}/hadoop-project/{hadoop}/hadoop-project-{hadoop}.pom") as answer:
    project = answer.read().decode()
sdk = re.search(r"<aws-java-sdk-v2.version>(.+?)<", project)[1]
packages = [f"org.apache.hadoop:hadoop-aws:{hadoop}"]
packages += [f"software.amazon.awssdk:{module}:{sdk}" for module in ("s3", "s3-transfer-manager", "sts")]
with tempfile.TemporaryDirectory() as ivy:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars.ivy", ivy)
    builder = builder.config("spark.jars.packages", ",".join(packages))
    builder.config("spark.jars.excludes", "software.amazon.awssdk:bundle").getOrCreate().stop()
    folder.mkdir(parents=True)
    for jar in pathlib.Path(ivy, "jars").glob("*.jar"):
        if not jar.name.startswith(("io.netty_", "org.slf4j_")):
            shutil.copy(jar, folder)
