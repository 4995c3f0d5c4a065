"""Tests that run in asyncio or in trio; what hangs fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import trio


def in_asyncio(test: Callable[[], Any]) -> Any:
    """Run a test in asyncio; what hangs fails."""

    async def limited() -> Any:
        async with asyncio.timeout(600):
            return await test()

    return asyncio.run(limited())


def in_trio(test: Callable[[], Any]) -> Any:
    """Run a test in trio; what hangs fails."""

    async def limited() -> Any:
        with trio.fail_after(600):
            return await test()

    return trio.run(limited)


LOOPS = pytest.mark.parametrize("library", [in_asyncio, in_trio])
