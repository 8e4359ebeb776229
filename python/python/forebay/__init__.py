"""SQL and files on shared storage at local speed.

>>> import forebay
>>> fb = forebay.connect("localhost:7400")      # a running `forebay up`; or forebay.up(data_dir=..): embedded
>>> fb.sql("select count(*) from '/lake/sales/*.parquet'").to_arrow()
>>> with fb.open("/lake/x.csv", "r") as file: ...
>>> fb.read("/lake/x.bin", offset=0, length=1 << 20)

Importing it starts nothing; ``pandas.read_parquet("forebay://lake/sales/")`` finds the file
system by the package's entry point.
"""

from forebay import _command, aio, errors  # noqa: F401: what has to come first
from forebay._forebay import VERSION as __version__
from forebay.client import Client, connect, up
from forebay.entries import Entry, Loaded, Usage
from forebay.errors import (
    AlreadyExists,
    Closed,
    Conflict,
    Corrupt,
    DataLost,
    Denied,
    Error,
    Internal,
    Invalid,
    NoSpace,
    NotContainer,
    NotEmpty,
    NotFound,
    Retry,
)
from forebay.files import ObjectReader, ObjectWriter
from forebay.mounts import Mount, Mounts
from forebay.nodes import Node, NodeUsage, Nodes
from forebay.result import Result
from forebay.shards import Shards
from forebay.table import Table

__all__ = [
    "AlreadyExists",
    "Client",
    "Closed",
    "Conflict",
    "Corrupt",
    "DataLost",
    "Denied",
    "Entry",
    "Error",
    "Internal",
    "Invalid",
    "Loaded",
    "Mount",
    "Mounts",
    "NoSpace",
    "Node",
    "NodeUsage",
    "Nodes",
    "NotContainer",
    "NotEmpty",
    "NotFound",
    "ObjectReader",
    "ObjectWriter",
    "Result",
    "Retry",
    "Shards",
    "Table",
    "Usage",
    "__version__",
    "aio",
    "connect",
    "errors",
    "up",
]
