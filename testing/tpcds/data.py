"""TPC-DS' tables, its 99 queries and DuckDB's answers, made once a scale and kept."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import duckdb

import answers

# Of these a query reads most: several files each, so that several tasks read them.
LARGE = ("store_sales", "catalog_sales", "web_sales", "store_returns", "catalog_returns", "web_returns", "inventory")
FILES = 6


class Data:
    """A folder with `tables` (a folder of Parquet files each), `queries` (a file each), and `answers.json`, what DuckDB says to them."""

    def __init__(self, folder: Path, scale: float, threads: int) -> None:
        self.folder, self.scale = folder / f"sf{scale:g}", scale
        if not all((self.folder / name).exists() for name in ("queries", "answers.json")):
            self._make(threads)
        made = json.loads((self.folder / "answers.json").read_text())
        self.tables: list[str] = made["tables"]
        self.queries: dict[int, str] = {int(number): query for number, query in made["queries"].items()}
        self.secs: dict[int, float] = {int(number): secs for number, secs in made["secs"].items()}
        self.answers = {int(number): answers.read(rows) for number, rows in made["answers"].items()}

    def as_tables(self, binary: Path) -> Path:
        """The folder of the same files in the form of Forebay's tables, made once by its binary."""
        folder, unfinished = self.folder / "albis", self.folder / "albis.tmp"
        if folder.exists():
            return folder
        shutil.rmtree(unfinished, ignore_errors=True)
        for file in sorted((self.folder / "tables").glob("*/*.parquet")):
            table = unfinished / file.parent.name / f"{file.stem}.albis"
            table.parent.mkdir(parents=True, exist_ok=True)
            # As URLs, for which no cluster is looked for.
            paths = [f"file://{path.resolve()}" for path in (file, table)]
            ran = subprocess.run([str(binary), "table", "convert", *paths], capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
        unfinished.rename(folder)
        return folder

    def _make(self, threads: int) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        tables = self.folder / "tables"
        tables.mkdir(parents=True)
        with duckdb.connect(config={"allow_unsigned_extensions": True, "threads": threads}) as made:
            made.execute(f"load '{_extension()}'")
            made.execute(f"call dsdgen(sf = {self.scale:g})")
            names = sorted(name for (name,) in made.sql("show tables").fetchall())
            for name in names:
                (tables / name).mkdir()
                parts = FILES if name in LARGE else 1
                for part in range(parts):
                    rows = f"select * from {name} where rowid % {parts} = {part}" if parts > 1 else f"from {name}"
                    made.execute(f"copy ({rows}) to '{tables / name / f'{part}.parquet'}' (format parquet)")
            queries = dict(made.sql("select query_nr, query from tpcds_queries()").fetchall())
        (self.folder / "queries").mkdir()
        for number, query in queries.items():
            (self.folder / "queries" / f"q{number:02}.sql").write_text(query)
        # Asked of the files, as Forebay is.
        secs, rows = {}, {}
        with duckdb.connect(config={"threads": threads}) as asked:
            for name in names:
                asked.execute(f"create view {name} as from '{tables / name}/*.parquet'")
            for number, query in queries.items():
                asked.sql(query).fetchall()
                began = time.monotonic()
                table = asked.sql(query).fetchall()
                secs[number] = time.monotonic() - began
                rows[number] = answers.write(table)
        text = json.dumps({"tables": names, "queries": queries, "secs": secs, "answers": rows})
        (self.folder / "answers.tmp").write_text(text)
        (self.folder / "answers.tmp").rename(self.folder / "answers.json")


def _extension() -> Any:
    files = importlib.metadata.files("duckdb-extension-tpcds") or []
    return next(file.locate() for file in files if file.name.endswith(".duckdb_extension"))
