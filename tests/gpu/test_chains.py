"""Launches that a flow repeats are phases of one launch, with the bits of the single launches."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import Element
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.rendered_programs import function_of
from flowcompute.gpu.run.chains import LaunchChain
from flowcompute.gpu.run.chains.chain_program import ADDRESSES_NAME, NAME, ChainProgram
from flowcompute.gpu.run.chains.group_chain import GROUP
from flowcompute.gpu.run.chains.launch_chain import LEAST, ChainMaker
from flowcompute.gpu.worker.launcher import LocalLauncher
from tests.golden.test_golden import GPU, NVIDIA
from tests.gpu.shapes import gpu_shaped, plan_for_gpu
from tests.gpu.tensor_devices import plan_on_paper
from tests.models.architecture_files import VOCABULARY, write_architecture

pytestmark = [pytest.mark.slow, pytest.mark.compiles]

HEADS, SIZE, CONTEXT = 2, 4, 24
WIDTH, DEEP = HEADS * SIZE, 10
WEIGHTS = np.random.default_rng(0).standard_normal((DEEP, WIDTH, WIDTH)).astype(np.float32) / 3
DATA = np.random.default_rng(1).standard_normal((CONTEXT, WIDTH)).astype(np.float32)
OWN = """#define TWICE 2.0f
float doubled(float x) { return x * TWICE; }"""


def attending(
    x: Element,
    text: Element | None = None,
    middle: bool = False,
    slots: int = 1,
    windows: Sequence[int | None] = (None,),
    context: int = CONTEXT,
) -> Element:
    """Return layers that attend to earlier records, with a kernel in the middle that has a macro of its own."""
    for number, weights in enumerate(WEIGHTS):
        heads = fc.reshape(x @ fc.constant(weights), (-1, HEADS, SIZE))
        window = windows[number % len(windows)]
        seen = fc.nn.self_attention(
            heads, heads * 0.5, heads - 1, text=text, slots=slots, context=context, window=window
        )
        x = fc.tanh(fc.reshape(seen, (-1, WIDTH)) @ fc.constant(weights))
        if middle and number == DEEP // 2:
            x = fc.opencl(OWN, x, dtype="float32") @ fc.constant(weights)
    return x * 2


@pytest.fixture
def chained() -> Iterator[list[int]]:
    """Lengths of the chains that were launched."""
    lengths: list[int] = []
    original = LaunchChain.again

    def again(chain: LaunchChain, *arguments: Any) -> None:
        original(chain, *arguments)
        lengths.append(len(chain.launches))

    with mock.patch.object(LaunchChain, "again", again):
        yield lengths


def flown(made: Element, batches: list[np.ndarray], device: str = "cpu", **options: Any) -> np.ndarray:
    with made.flow(device=device, **options) as flow:
        return np.concatenate([(flow.send(batch), flow.receive())[1] for batch in batches])


def feed() -> Element:
    return fc.feed(shape=(WIDTH,), dtype="float32")


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_chains_have_the_bits_of_single_launches(chained: list[int], workers: int) -> None:
    whole = attending(fc.source(DATA)).resolve(device="cpu", progress=False)
    original = LaunchChain.__init__

    def with_workers(chain: LaunchChain, launches: Any, program: Any, compiled: Any, asking: Any, _: int) -> None:
        original(chain, launches, program, compiled, asking, workers)

    batches = [DATA[:5], *DATA[5:20, None], DATA[20:22], DATA[22:]]
    with mock.patch.object(LaunchChain, "__init__", with_workers):
        made = flown(attending(feed()), batches)
    np.testing.assert_array_equal(made, whole)
    # The first kernel reads what was sent, the last one writes what is received. Of the first records each is timed.
    kernels = len(attending(feed()).plan(device="cpu").kernels)
    assert len(chained) >= 8
    assert {*chained} == {kernels - 2}
    assert kernels - 2 >= LEAST


def test_caches_that_make_room_at_different_records_share_a_chain(chained: list[int]) -> None:
    """Rows of caches advance alike until one with a window drops its first records."""
    windows, data = (30, 3), np.concatenate([DATA] * 6)
    whole = attending(fc.source(data), windows=windows, context=200).resolve(device="cpu", progress=False)
    shifts: list[int] = []
    original = LaunchChain._shifted

    def shifted(chain: LaunchChain, *arguments: Any) -> int:
        shifts.append(original(chain, *arguments))
        return shifts[-1]

    with mock.patch.object(LaunchChain, "_shifted", shifted):
        one_by_one = fc.Strategy(batch_bytes=WIDTH * 4)
        made = flown(attending(feed(), windows=windows, context=200), [*data[:, None]], strategy=one_by_one)
    np.testing.assert_array_equal(made, whole)
    assert len(chained) > 16
    assert shifts[0] > 0
    assert shifts.count(0) > 0, "phases are noted anew where one cache has made room"


@pytest.mark.parametrize("groups", [1, 3])
def test_chains_of_work_groups_have_the_bits_of_single_launches(
    chained: list[int], tmp_path: Path, groups: int
) -> None:
    tokens = np.random.default_rng(3).integers(3, len(VOCABULARY), 24).astype(np.int32)
    model = fc.models.load(write_architecture(tmp_path / "model.gguf", "llama", kind="Q8_0"))
    maker = "flowcompute.gpu.run.chains.launch_chain"
    with (
        mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()),
        mock.patch.multiple(maker, LEAST=4, SHARED=1, GROUPS_PER_UNIT=groups),
        mock.patch.object(ChainMaker, "_is_short", return_value=True),
    ):
        whole = model.logits(fc.source(tokens)).resolve(device="gpu", progress=False)
        assert not chained
        made = flown(model.logits(fc.feed(dtype="int32")), np.split(tokens, [1, 2, 3, 4, 9, 14, *range(15, 24)]), "gpu")
    assert made.tobytes() == whole.tobytes()
    assert len(chained) > 10


def test_a_record_is_few_launches() -> None:
    counts: list[int] = []
    with (
        mock.patch.object(LocalLauncher, "launch", autospec=True, side_effect=LocalLauncher.launch) as launch,
        attending(feed()).flow(device="cpu") as flow,
    ):
        for row in DATA:
            launch.reset_mock()
            flow.send(row[None])
            flow.receive()
            counts.append(launch.call_count)
    assert counts[-1] == 3, "the first kernel, the chain, the last kernel"
    assert counts[0] > LEAST


def test_all_is_built_with_the_first_single_record(chained: list[int]) -> None:
    counts: list[int] = []
    # PoCL compiles a kernel when it is first launched.
    launched: list[set[str]] = []
    with (
        mock.patch.object(LocalLauncher, "build", autospec=True, side_effect=LocalLauncher.build) as build,
        mock.patch.object(LocalLauncher, "launch", autospec=True, side_effect=LocalLauncher.launch) as launch,
        attending(feed()).flow(device="cpu") as flow,
    ):
        for batch in [DATA[:5], *DATA[5:20, None]]:
            flow.send(batch)
            flow.receive()
            counts.append(build.call_count)
            launched.append({call.args[1].function_name for call in launch.call_args_list})
    assert chained
    assert {NAME, ADDRESSES_NAME} <= launched[1]
    assert launched[1] == launched[-1]
    assert counts[0] < counts[1], "the chain"
    assert counts[1] == counts[-1]


def test_what_is_sent_once_looks_for_no_chain() -> None:
    with mock.patch.object(ChainProgram, "number_of", side_effect=AssertionError("looked")):
        flown(attending(feed()), [DATA[:5]])
        # So few launches are none, however often they are repeated.
        flown(fc.tanh(feed()) @ fc.constant(WEIGHTS[0]), [*DATA[:3, None]])


def test_texts_that_begin_and_end_change_chains(chained: list[int]) -> None:
    """A batch has a record of each open text. A number of records that comes again finds its chain."""
    texts = [[0, 1, 2]] * 6 + [[0, 2]] * 5 + [[0, 4, 2]] * 4
    rows = np.concatenate(texts)
    data = np.random.default_rng(2).standard_normal((len(rows), WIDTH)).astype(np.float32)
    both = np.concatenate([data, rows[:, None].astype(np.float32)], axis=1)
    feed = fc.feed(shape=(WIDTH + 1,), dtype="float32")
    made = attending(feed[:, :WIDTH] * 1, fc.astype(feed[:, WIDTH], "int32"), slots=3)
    results, launched, place = list[np.ndarray](), list[int](), 0
    prepare = LaunchChain.prepare
    with (
        mock.patch.object(LaunchChain, "prepare", autospec=True, side_effect=prepare) as prepared,
        made.flow(device="cpu") as flow,
    ):
        for one in texts:
            chained.clear()
            flow.send(both[place : place + len(one)])
            results.append(flow.receive())
            launched.append(len(chained))
            place += len(one)
    # The first two are timed, the third is alike. Where a text ends, the first of the others is launched step by step.
    assert launched == [0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert prepared.call_count == 2
    whole = np.concatenate(results)
    for text in range(5):
        if text in rows:
            alone = attending(fc.source(data[rows == text]) * 1).resolve(device="cpu", progress=False)
            np.testing.assert_array_equal(whole[rows == text], alone)


def test_kernels_with_macros_cut_a_chain(chained: list[int]) -> None:
    whole = attending(fc.source(DATA), middle=True).resolve(device="cpu", progress=False)
    kernels = len(attending(feed(), middle=True).plan(device="cpu").kernels)
    with mock.patch("flowcompute.gpu.run.chains.launch_chain.LEAST", 4):
        made = flown(attending(feed(), middle=True), [*DATA[:, None]])
    np.testing.assert_array_equal(made, whole)
    assert len({*chained}) == 2
    assert sum({*chained}) == kernels - 3


def test_a_text_that_is_too_long_names_its_attention(chained: list[int]) -> None:
    with attending(feed()).flow(device="cpu") as flow:
        for row in DATA:
            flow.send(row[None])
            flow.receive()
        assert chained
        with pytest.raises(fc.RunError, match=f"{CONTEXT}") as caught:
            flow.send(DATA[:1])
    assert "self_attention" in str(caught.value)


def test_a_chain_that_finds_no_room_is_done_anew(chained: list[int]) -> None:
    whole = attending(fc.source(DATA)).resolve(device="cpu", progress=False)
    launch, left = LocalLauncher.launch, [0]

    def refused(own: LocalLauncher, *arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise fc.DeviceFullError("no room")
        return launch(own, *arguments, **options)

    with mock.patch.object(LocalLauncher, "launch", refused), attending(feed()).flow(device="cpu") as flow:
        for row, record in enumerate(DATA):
            # The last launch of a record stands behind the chain, and the chain is the second one.
            left[0] = {12: 3, 18: 2}.get(row, 0)
            with pytest.warns(fc.DeviceWarning, match="no room") if row == 12 else contextlib.nullcontext():
                flow.send(record[None])
            np.testing.assert_array_equal(flow.receive(), whole[row : row + 1])
    assert len(chained) > 8


def test_kernels_are_counted_one_by_one(chained: list[int]) -> None:
    """A chain has the kernels of its launches; seconds of each are estimated from those that were timed alone."""
    with attending(feed()).flow(device="cpu") as flow:
        for row in DATA:
            flow.send(row[None])
            flow.receive()
        kernels = len(flow.plan.kernels)
        assert chained
        counted = sum(each.launches for each in flow.metrics.values())
        assert counted == kernels * len(DATA)


def test_other_devices_launch_one_by_one() -> None:
    maker = ChainMaker(mock.Mock(chains=False), mock.Mock())
    launches = [mock.Mock()] * 40
    assert maker.joined(launches, mock.Mock(), build=True) is launches


def test_kernels_with_local_arrays_have_no_place() -> None:
    (shared,) = plan_for_gpu(fc.nn.softmax(fc.source(DATA), axis=1)).kernels
    (alone,) = plan_for_gpu(fc.source(DATA) * 2).kernels
    assert "__local" in shared.source
    assert ChainProgram().number_of(shared.ir) is None
    assert "__local" not in alone.source
    assert ChainProgram().number_of(alone.ir) == 0


def test_longer_launches_on_gpus_stay_alone() -> None:
    """A launch with more work-groups than compute units takes longer on the device than on the host."""
    capabilities = mock.Mock(chains=True, code_shape="gpu", units=4)
    maker = ChainMaker(capabilities, mock.Mock())
    assert maker._is_short(mock.Mock(groups=4))
    assert not maker._is_short(mock.Mock(groups=5))


def test_texts_of_work_groups_have_room_for_local_arrays() -> None:
    program = ChainProgram(GROUP, GPU.local_bytes)
    (shared,) = plan_for_gpu(fc.nn.softmax(fc.source(DATA), axis=1)).kernels
    assert program.number_of(shared.ir) == 0
    assert "union fc_arrays arrays;" in program.text()
    assert "*restrict" not in program.text()


def test_kernels_that_fill_local_memory_stay_alone() -> None:
    """Tiles of half formats take all of the 48 KiB that most drivers tell, beside which a chain has arrays of its own."""
    small = dataclasses.replace(NVIDIA, local_bytes=48 << 10)
    product = fc.source(np.zeros((64, 64), np.float16)) @ fc.constant(np.zeros((64, 64), np.float16))
    (full,) = plan_on_paper(product, capabilities=small).kernels
    assert full.ir.work_group == GROUP
    assert ChainProgram(GROUP, small.local_bytes).number_of(full.ir) is None
    assert ChainProgram(GROUP, NVIDIA.local_bytes).number_of(full.ir) == 0


def test_bytes_of_local_arrays_are_those_of_their_types() -> None:
    sizes = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "float": 4, "long": 8, "double": 8}
    data = fc.source(np.zeros((8, 300), np.float16))
    kernels = [
        *plan_for_gpu(fc.nn.softmax(data, axis=1)).kernels,
        *plan_for_gpu(fc.astype(data, "float64").max(axis=1)).kernels,
        *plan_for_gpu((data > 0).any(axis=1)).kernels,
        *plan_on_paper(fc.cumulative_sum(data, axis=0), capabilities=NVIDIA).kernels,
    ]
    arrays = [array for kernel in kernels for array in function_of(kernel.ir).arrays]
    assert len(arrays) > 4
    for array in arrays:
        name = array.kind.rstrip("0123456789")
        assert array.item_bytes == sizes[name] * int(array.kind.removeprefix(name) or 1)
        assert array.most_bytes >= array.size * array.item_bytes
