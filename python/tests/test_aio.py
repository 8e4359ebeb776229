"""The client for async programs."""

from __future__ import annotations

import asyncio
import os

import pytest

import forebay
from test_sql import LONG


def test_everything_is_awaited(server, fb, lake, sales):
    data = os.urandom(100_000)

    async def use():
        async with await forebay.aio.connect(server) as aio:
            await aio.put("/lake/aio/x", data)
            assert await aio.read("/lake/aio/x", 5, 10) == data[5:15]
            views = await asyncio.gather(*(aio.read("/lake/aio/x", at * 100, 100) for at in range(100)))
            assert b"".join(views) == data[:10_000]
            assert (await aio.stat("/lake/aio/x")).size == len(data)
            assert [entry.name for entry in await aio.ls("/lake/aio")] == ["x"]
            assert "lake" in await aio.mounts.list()
            result = await aio.sql("select n from '/lake/sales/' where n < $1 order by n", [3])
            assert (await result.to_arrow()).to_pylist() == [{"n": 0}, {"n": 1}, {"n": 2}]
            rows = 0
            async for batch in await aio.sql("select n from '/lake/sales/'"):
                rows += batch.num_rows
            assert rows == 3000
            with pytest.raises(forebay.NotFound) as caught:
                await aio.read("/lake/aio/nothing")
            assert caught.value.path == "/lake/aio/nothing"
            await aio.delete("/lake/aio/x")
            assert not await aio.exists("/lake/aio/x")

    asyncio.run(use())

    async def through_the_client():
        return await fb.aio.usage("/lake/sales/")

    assert asyncio.run(through_the_client()).objects == 3


def test_cancelling_ends_the_query_and_leaves_the_loop_free(fb):
    async def use():
        async def long():
            return await (await fb.aio.sql(LONG)).to_arrow()

        task = asyncio.create_task(long())
        beats = 0
        for _ in range(50):
            await asyncio.sleep(0.01)
            beats += 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return beats, await (await fb.aio.sql("select 1 as one")).to_arrow()

    beats, table = asyncio.run(asyncio.wait_for(use(), 30))
    assert beats == 50 and table.to_pylist() == [{"one": 1}]
