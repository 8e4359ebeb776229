"""Table files from Python."""

from __future__ import annotations

import polars
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pytest

import forebay


@pytest.fixture(scope="module")
def table(fb, sales):
    options = "options (groups 'n,square', row_group_rows '500')"
    fb.sql(f"copy (select * from '/lake/sales/' order by n) to '/lake/sales.albis' {options}").to_arrow()
    return fb.table("/lake/sales.albis")


def test_rows_and_schema(table, sales):
    assert (len(table), table.schema.names) == (3000, ["n", "square", "word"])
    assert table.to_pyarrow().to_pydict() == sales.to_pydict()
    assert pyarrow.table(table).num_rows == 3000
    assert polars.DataFrame(table)["n"].sum() == sum(range(3000))
    assert repr(table) == "<forebay.Table /lake/sales.albis>"


def test_columns_and_filters(table, sales):
    some = table.to_pyarrow(["word", "n"], "n >= $1 and word = $2", [2500, "word-3"])
    n = sales["n"]
    mask = pyarrow.compute.and_(pyarrow.compute.greater_equal(n, 2500), pyarrow.compute.equal(sales["word"], "word-3"))
    assert some.to_pydict() == sales.filter(mask).select(["word", "n"]).to_pydict()
    assert table.to_pyarrow(["n"], "n < 0").num_rows == 0
    with pytest.raises(ValueError, match="empty"):
        table.to_pyarrow([])
    with pytest.raises(TypeError):
        table.to_pyarrow("n")


def test_rows_by_their_number(table, sales):
    rows = [2999, 0, 700, 0, 1501]
    assert table.take(rows).to_pydict() == sales.take(rows).to_pydict()
    assert table.take(rows, ["word"]).to_pydict() == sales.select(["word"]).take(rows).to_pydict()
    nothing = table.take([])
    assert (nothing.num_rows, nothing.schema.names) == (0, ["n", "square", "word"])
    for beyond in [3000, -1]:
        with pytest.raises(IndexError, match=f"row {beyond} of a table that has 3000"):
            table.take([5, beyond])
    with pytest.raises(ValueError, match="at most"):
        table.take(range(200_000))
    with pytest.raises(TypeError):
        table.take([1.5])
    with pytest.raises(TypeError):
        table.take([1], "n")


def test_rows_of_several_files_have_no_number(fb):
    for path in ["/lake/sales/", "/lake/*.albis"]:
        with pytest.raises(ValueError, match="several"):
            fb.table(path).take([1])


def test_streams_and_scanners(table):
    reader = table.reader(["n"], "n < 100")
    assert isinstance(reader, pyarrow.RecordBatchReader)
    assert reader.read_all()["n"].to_pylist() == list(range(100))
    scanner = table.scanner(["n"])
    assert isinstance(scanner, pyarrow.dataset.Scanner)
    assert pyarrow.compute.sum(scanner.to_table()["n"]).as_py() == sum(range(3000))


def test_a_file_that_is_none(fb, lake):
    (lake / "broken.albis").write_bytes(b"not a table" * 20)
    with pytest.raises(forebay.Corrupt, match="broken.albis"):
        fb.table("/lake/broken.albis").to_pyarrow()
    with pytest.raises(forebay.NotFound):
        fb.table("/lake/nothing.albis").to_pyarrow()
