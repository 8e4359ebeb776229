"""DuckDB over the files of the wide table: peer.py FOLDER

Takes a JSON text a line, the query, and gives a JSON line of the rows of its answer and the milliseconds that it took.
"""

import json
import sys
import time

import duckdb

folder = sys.argv[1].replace("'", "''")
connection = duckdb.connect()
connection.execute(f"create view visits as select * from '{folder}/visits/*.parquet'")
print("ready", flush=True)
for line in sys.stdin:
    query = json.loads(line)
    began = time.perf_counter()
    rows = connection.execute(query).fetchall()
    print(json.dumps({"rows": len(rows), "ms": (time.perf_counter() - began) * 1e3}), flush=True)
