"""Answers whose async iterator is cancelled, in trio and in asyncio: nothing is lost, and they are frozen or go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import trio

import flowcompute as fc
from flowcompute.runtime.flows.flow_core import FlowCore
from tests.models.files import write_model

OPTIONS: dict[str, Any] = {"device": "numpy", "temperature": 1.2}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "small.gguf")


@pytest.fixture
def model(path: Path) -> fc.models.Model:
    return fc.models.load(path)


def wanted(model: fc.models.Model) -> tuple[list[int], str]:
    with model.generate("the sing", 9, seed=3, **OPTIONS) as said:
        list(said)
    return said.tokens, said.text


class Held:
    """Computing that is held up in its thread until it may go on."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        self.sends = 0

    def send(self, core: FlowCore, arrays: Any) -> None:
        self.sends += 1
        if self.sends == 3:
            self.began.set()
            self.may_end.wait()
        _SEND(core, arrays)


_SEND = FlowCore.send


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    with mock.patch.object(FlowCore, "send", lambda core, arrays: made.send(core, arrays)):
        yield made


async def written(said: Any) -> None:
    async for _ in said:
        pass


async def in_trio(said: Any, held: Held) -> None:
    """Cancel an answer while its third token is computed."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(written, said)
            await trio.to_thread.run_sync(held.began.wait)
            scope.cancel()
            held.may_end.set()
    assert scope.cancelled_caught


async def in_asyncio(said: Any, held: Held) -> None:
    """Cancel as `in_trio`."""
    task = asyncio.create_task(written(said))
    await asyncio.to_thread(held.began.wait)
    task.cancel()
    held.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task


LOOPS = pytest.mark.parametrize(
    ("run", "cancel"), [(trio.run, in_trio), (asyncio.run, in_asyncio)], ids=["trio", "asyncio"]
)


@LOOPS
def test_a_cancelled_answer_goes_on(model: fc.models.Model, held: Held, run: Any, cancel: Callable[..., Any]) -> None:
    async def main() -> tuple[list[int], str]:
        async with model.generate("the sing", 9, seed=3, **OPTIONS) as said:
            await cancel(said, held)
            assert len(said.tokens) < 9
            await written(said)
        return said.tokens, said.text

    assert run(main) == wanted(model) if run is trio.run else run(main()) == wanted(model)


@LOOPS
def test_a_cancelled_answer_is_frozen(
    model: fc.models.Model, held: Held, tmp_path: Path, run: Any, cancel: Callable[..., Any]
) -> None:
    async def main() -> None:
        async with model.generate("the sing", 9, seed=3, **OPTIONS) as said:
            await cancel(said, held)
            assert await said.afreeze(tmp_path / "kept") == str(tmp_path / "kept")

    threads = threading.active_count()
    run(main) if run is trio.run else run(main())
    with fc.thaw(tmp_path / "kept").generation(device="numpy") as said:
        list(said)
    assert (said.tokens, said.text) == wanted(model)
    assert threading.active_count() <= threads + 1, "idle threads of trio aside"


@LOOPS
def test_cancelled_conversations_go_on(
    model: fc.models.Model, held: Held, tmp_path: Path, run: Any, cancel: Callable[..., Any]
) -> None:
    async def main() -> list[list[int]]:
        async with model.conversations(2, **OPTIONS) as talks:
            every = [talks.begin(text, 6, seed=3) for text in ("the sing", "a", "12")]
            await cancel(talks, held)
            await talks.afreeze(tmp_path / "kept")
            await written(talks)
        return [one.tokens for one in every]

    made = run(main) if run is trio.run else run(main())
    for text, tokens in zip(("the sing", "a", "12"), made, strict=True):
        with model.generate(text, 6, seed=3, **OPTIONS) as said:
            list(said)
        assert said.tokens == tokens
    with fc.thaw(tmp_path / "kept").conversations(device="numpy") as talks:
        every = talks.open
        list(talks)
    assert [one.tokens for one in every] == made


def test_freezing_is_awaited_where_the_answer_is_open_so(model: fc.models.Model, tmp_path: Path) -> None:
    async def main() -> None:
        async with model.generate("the sing", 3, **OPTIONS) as said:
            with pytest.raises(fc.RunError, match="not open"):
                said.freeze(tmp_path / "kept")

    trio.run(main)
