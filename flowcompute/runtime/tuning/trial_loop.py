"""Tries the candidates of a search one after the other, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flowcompute.errors import DeviceError, DeviceFullError, FlowError
from flowcompute.observe import EventStream, TrialFailed, TrialMeasured
from flowcompute.runtime.tuning.trial_budget import Budget
from flowcompute.strategy import Candidate, PairedTrials, Search


def try_candidates(
    where: str,
    search: Search,
    pairs: PairedTrials,
    budget: Budget,
    seconds: Callable[[Candidate], float],
    stream: EventStream,
    *,
    may_try: Callable[[Candidate], bool],
    is_same: Callable[[Candidate], bool] | None = None,
    loses_device: bool = False,
) -> bool:
    """Measure what a search asks for, until it asks for nothing more or no more may be tried.

    A candidate that cannot be measured fails, and the search goes on.

    Args:
        where: "run", or the name of a kernel.
        search: says what to measure next, and judges it.
        pairs: measures it alternately with what is in use.
        budget: pays for it.
        seconds: measures one candidate, or what is in use.
        stream: is told of each trial.
        may_try: whether a candidate may be tried now.
        is_same: whether a candidate is what is in use by another name; there is nothing to measure then.
        loses_device: whether a device that fails under a trial is lost to the job, too.

    Returns:
        Whether anything was measured.

    Raises:
        DeviceError: of a device that failed, where it is lost to the job.
    """
    tried = False
    while (candidate := search.ask()) is not None and may_try(candidate):
        try:
            if is_same is not None and budget.measure(partial(is_same, candidate)):
                search.skip(candidate)
                continue
            tried = True
            ratio = budget.measure(partial(pairs.ratio, candidate, seconds))
        except FlowError as error:
            if loses_device and isinstance(error, DeviceError) and not isinstance(error, DeviceFullError):
                raise
            search.fail(candidate)
            stream.emit(TrialFailed(where, search, candidate, error.message))
        else:
            search.tell(candidate, ratio)
            stream.emit(TrialMeasured(where, search, candidate, ratio, 0.0))
    return tried
