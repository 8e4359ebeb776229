"""Spark over s3a: Parquet written by its committers, and read back."""

import glob
import os
import sys

from pyspark.sql import SparkSession, functions as f

jars = glob.glob(os.environ["FOREBAY_CACHE"] + "/spark-jars/*.jar")
assert jars, "the jars of s3a are not there: run `make test-deps`"
builder = SparkSession.builder.master("local[2]").appName("forebay")
settings = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraClassPath": ":".join(jars),
    "spark.sql.shuffle.partitions": "2",
    "spark.hadoop.fs.s3a.endpoint": sys.argv[1],
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
    "spark.hadoop.fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
}
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frame = spark.range(200_000).withColumn("part", f.col("id") % 3).withColumn("text", f.concat(f.lit("row "), f.col("id") % 50))
frame.write.partitionBy("part").parquet("s3a://lake/spark/set")
back = spark.read.parquet("s3a://lake/spark/set")
assert back.count() == 200_000
assert back.where("part = 1").agg(f.sum("id")).first()[0] == sum(range(1, 200_000, 3))
frame.where("id < 10").write.mode("overwrite").parquet("s3a://lake/spark/set")
assert spark.read.parquet("s3a://lake/spark/set").count() == 10
spark.stop()
