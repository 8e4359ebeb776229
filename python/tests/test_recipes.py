"""The Python of docs/recipes that says that it is run, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

RECIPES = Path(__file__).parents[2] / "docs/recipes"


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python run\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def orders(lake: Path) -> int:
    """What ``/lake/orders/`` holds, added up."""
    (lake / "orders").mkdir()
    for part in range(3):
        amounts = list(range(part * 100, part * 100 + 100))
        table = pyarrow.table({"region": [f"region-{amount % 4}" for amount in amounts], "amount": amounts})
        pyarrow.parquet.write_table(table, lake / "orders" / f"part-{part}.parquet")
    return sum(range(300))


def test_recipes_that_are_run_are_there():
    assert sorted(page.name for page in RECIPES.glob("*.md") if blocks(page)) == ["duckdb.md", "pandas.md", "polars.md", "pyarrow.md"]


@pytest.mark.parametrize("name", ["duckdb", "pandas", "polars", "pyarrow"])
def test_a_recipe(name: str, address: str, orders: int):
    page = RECIPES / f"{name}.md"
    for block in blocks(page):
        names: dict[str, object] = {}
        exec(compile(block, str(page), "exec"), names)
        assert names["total"] == orders
        if close := getattr(names.get("fb"), "close", None):
            close()
