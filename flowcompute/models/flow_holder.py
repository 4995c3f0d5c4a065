"""A flow that is open inside of a `with` block, plain or asynchronous."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from flowcompute.errors import RunError
from flowcompute.imports import LateModule

if TYPE_CHECKING:
    from flowcompute.runtime import flows
else:
    flows = LateModule("flowcompute.runtime.flows")


class FlowHolder:
    """Writer of texts through a flow: a context manager that opens it.

    Args:
        open_flow: opens the flow from tokens to the next token, or to the scores of all.
    """

    _example: ClassVar[str]

    def __init__(self, open_flow: Callable[[], flows.FlowOpener]) -> None:
        self._open_flow = open_flow
        self._opener: flows.FlowOpener | None = None
        self._flow: flows.Flow | flows.AsyncFlow | None = None

    def __enter__(self) -> Self:
        self._opener = self._open_flow()
        self._flow = self._opener.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opener, self._opener, self._flow = self._opener, None, None
        if opener is not None:
            opener.__exit__(kind, error, trace)

    async def __aenter__(self) -> Self:
        self._opener = self._open_flow()
        self._flow = await self._opener.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opener, self._opener, self._flow = self._opener, None, None
        if opener is not None:
            await opener.__aexit__(kind, error, trace)

    def _plain(self) -> flows.Flow:
        if not isinstance(self._flow, flows.Flow):
            raise self._closed("with")
        return self._flow

    def _asynchronous(self) -> flows.AsyncFlow:
        if not isinstance(self._flow, flows.AsyncFlow):
            raise self._closed("async with")
        return self._flow

    async def _sent(self, records: np.ndarray, take: Callable[[Any], None]) -> None:
        """Send records and take what comes of them, as one: a wait that is cancelled has done both or neither."""
        flow = self._asynchronous()
        before = flow.sent
        try:
            await flow.send(records)
        finally:
            # Where asyncio cancels the wait, records that were being computed with count all the same.
            if flow.sent != before and flow.waiting:
                take(np.asarray(await flow.receive()))

    def _closed(self, how: str) -> RunError:
        return RunError(
            "cannot go on with a generation that is not open", element="generate", hint=f"{how} {self._example}: ..."
        )
