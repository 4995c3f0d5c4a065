"""Choosing devices, with made-up ones, and what a process may do with real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute.gpu.device.discovery as devices_module
from flowcompute.errors import PlanError
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.discovery import all_devices, choose, describe, describe_devices, ordered, select_device

POCL_3_0 = "OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6, SLEEF, DISTRO, POCL_DEBUG"


def fake(
    name: str,
    *,
    platform: str = "Vendor CL",
    version: str = "OpenCL 3.0",
    kind: str = "GPU",
    float64: bool = True,
    unified: bool = False,
    memory: int = 1 << 30,
    rounding: int = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT,
    width: int = 8,
    capability: tuple[int, int] = (7, 5),
) -> Device:
    handle = SimpleNamespace(
        name=name,
        version="OpenCL 3.0 something",
        driver_version="1.2.3",
        type=getattr(cl.device_type, kind),
        host_unified_memory=unified,
        global_mem_size=memory,
        max_mem_alloc_size=memory // 4,
        local_mem_size=48 << 10,
        max_compute_units=7,
        max_work_group_size=1024,
        native_vector_width_float=width,
        single_fp_config=rounding,
        double_fp_config=63 if float64 else 0,
        compute_capability_major_nv=capability[0],
        compute_capability_minor_nv=capability[1],
    )
    return Device(handle, SimpleNamespace(name=platform, version=version))


def pocl(version: str = POCL_3_0) -> Device:
    number = version.split("PoCL ")[1].split(maxsplit=1)[0]
    return fake(f"cpu with {number}", platform="Portable Computing Language", version=version, kind="CPU")


DISCRETE = fake("NVIDIA H200", platform="NVIDIA CUDA", memory=140 << 30, capability=(9, 0))
SMALLER = fake("NVIDIA T4", platform="NVIDIA CUDA", memory=16 << 30)
POCL_ON_CUDA = fake("H200 by PoCL", platform="Portable Computing Language", version=POCL_3_0, memory=200 << 30)
INTEL = fake("Xeon", platform="Intel(R) OpenCL", kind="CPU")
NEWEST = pocl("OpenCL 3.0 PoCL 7.1  Linux, Release, LLVM 19")
NEWER = pocl("OpenCL 3.0 PoCL 3.1+debian  Linux, LLVM 15")
WHEEL = pocl()
OLD = pocl("OpenCL 2.0 pocl 1.8  None+Asserts, LLVM 12".replace("pocl", "PoCL"))
OTHER_CPU = fake("EPYC", platform="AMD APP", kind="CPU")
INTEGRATED = fake("Iris", platform="Intel(R) OpenCL Graphics", unified=True)
ACCELERATOR = fake("FPGA", platform="Board", kind="ACCELERATOR")
PREFERRED = [
    DISCRETE,
    SMALLER,
    POCL_ON_CUDA,
    WHEEL,
    NEWEST,
    NEWER,
    OLD,
    INTEL,
    OTHER_CPU,
    INTEGRATED,
    ACCELERATOR,
]


@given(st.permutations(PREFERRED), st.integers(1, len(PREFERRED)))
def test_auto_takes_the_best_whatever_the_order_of_drivers(devices: list[Device], count: int) -> None:
    present = devices[:count]
    best = next(device for device in PREFERRED if device in present)
    chosen = choose(ordered(present), "auto", needs_float64=True)
    assert chosen.handle is best.handle
    assert chosen.capabilities.reason.startswith("auto: ")


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ([DISCRETE, WHEEL], "the best of 2 is a discrete GPU"),
        ([WHEEL], "the only OpenCL device is the CPU through PoCL 3.0, which comes with the package"),
        ([NEWER, WHEEL], "the CPU through PoCL 3.0, which comes with the package"),
        ([NEWER, OLD], "the CPU through PoCL 3.1, newer than the package's"),
        ([INTEL, WHEEL], "the CPU through PoCL 3.0, which comes with the package"),
        ([INTEL], "the CPU through Intel(R) OpenCL"),
        ([INTEGRATED], "a GPU that shares the host's memory"),
        ([ACCELERATOR], "neither a CPU nor a GPU"),
        ([OLD], "the CPU through PoCL 1.8"),
    ],
)
def test_the_reason_is_in_words(devices: list[Device], words: str) -> None:
    assert choose(ordered(devices), "auto", needs_float64=False).capabilities.reason.endswith(words)


def test_auto_skips_what_has_no_float64_and_says_so() -> None:
    poor = fake("Arc", float64=False)
    devices = ordered([WHEEL, poor])
    assert choose(devices, "auto", needs_float64=False).handle is poor.handle
    chosen = choose(devices, "auto", needs_float64=True)
    assert chosen.handle is WHEEL.handle
    assert "skipped: Arc has no float64" in chosen.capabilities.reason
    with pytest.raises(PlanError, match="cannot compute in float64: no OpenCL device") as caught:
        choose([poor], "auto", needs_float64=True)
    assert caught.value.got == "Arc has no float64"
    assert "float32" in str(caught.value.hint)


@pytest.mark.parametrize("spec", ["gpu", "gpu:0", "Arc", "vendor"])
def test_a_named_device_without_float64_is_refused_by_name(spec: str) -> None:
    poor = fake("Arc", float64=False)
    assert choose([poor], spec, needs_float64=False).handle is poor.handle
    with pytest.raises(PlanError, match="cannot compute in float64 on device Arc"):
        choose([poor], spec, needs_float64=True)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("gpu", DISCRETE),
        ("gpu:1", SMALLER),
        ("cpu", WHEEL),
        ("cpu:1", NEWER),
        ("h200", DISCRETE),
        ("PoCL 3.0", WHEEL),
        ("debian", NEWER),
        (" t4 ", SMALLER),
        ("GPU:1", SMALLER),
        (" Cpu ", WHEEL),
    ],
)
def test_specs(spec: str, wanted: Device) -> None:
    chosen = choose(ordered([WHEEL, SMALLER, NEWER, DISCRETE]), spec, needs_float64=False)
    assert chosen.handle is wanted.handle
    assert repr(spec) in chosen.capabilities.reason


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpu:2", "there are 2 GPU devices"),
        ("cpu:7", "there is 1 CPU device"),
        ("cuda", "fits 2 devices"),
        ("radeon", "fits no device"),
        ("", "fits no device"),
        ("cpu:", "fits no device"),
        ("gpu:-1", "fits no device"),
        ("GPU:2", "there are 2 GPU devices"),
    ],
)
def test_a_spec_that_fits_none_or_several_lists_candidates(spec: str, message: str) -> None:
    devices = ordered([WHEEL, SMALLER, DISCRETE])
    with pytest.raises(PlanError, match=message) as caught:
        choose(devices, spec, needs_float64=False)
    hint = str(caught.value.hint)
    assert "gpu:0    NVIDIA CUDA / NVIDIA H200" in hint
    assert "gpu:1    NVIDIA CUDA / NVIDIA T4" in hint
    assert ("cpu:0" in hint) == ("    numpy " in hint) == (spec != "cuda")
    assert hint.startswith('device="gpu:0", or another one of')
    assert caught.value.expected == '"auto", "gpu", "gpu:1", "cpu", "numpy", or text that fits exactly one device'


def test_only_what_there_is_is_offered() -> None:
    with pytest.raises(PlanError, match="there are 0 GPU devices") as caught:
        choose([WHEEL], "gpu", needs_float64=False)
    assert caught.value.expected == '"auto", "cpu", "numpy", or text that fits exactly one device'
    assert str(caught.value.hint).startswith('device="cpu:0", or another one of\n    cpu:0 ')


def test_several_names_in_one_text_are_to_be_a_list() -> None:
    with pytest.raises(PlanError, match="fits no device") as caught:
        choose([WHEEL], "cpu, numpy", needs_float64=False)
    assert 'as a list: device=["cpu", "numpy"]' in str(caught.value.hint)


def test_without_devices_the_error_says_what_to_install() -> None:
    for spec in ("auto", "cpu", "anything"):
        with pytest.raises(PlanError, match="cannot find any OpenCL device") as caught:
            choose([], spec, needs_float64=False)
        assert "OCL_ICD_VENDORS" in str(caught.value.hint)
        assert "pocl" in str(caught.value.hint)


@given(st.permutations(PREFERRED))
def test_each_described_spec_chooses_that_device(devices: list[Device]) -> None:
    devices = list(ordered(devices))
    for row, device in zip(describe(devices), devices, strict=True):
        assert choose(devices, row.spec, needs_float64=False).handle is device.handle
        assert (row.name, row.platform, row.units) == (device.capabilities.name, device.platform, 7)


def test_traits_of_devices() -> None:
    gpu = fake("  Some   GPU ", memory=8 << 30, rounding=0, float64=False).capabilities
    assert (gpu.name, gpu.code_shape, gpu.host_memory, gpu.float64) == ("Some GPU", "gpu", False, False)
    assert (gpu.memory_bytes, gpu.max_buffer_bytes, gpu.correct_division) == (8 << 30, 2 << 30, False)
    assert gpu.kind == "Vendor CL | 1.2.3 | Some GPU"
    shared = INTEGRATED.capabilities
    assert (shared.code_shape, shared.host_memory) == ("gpu", True)
    cpu = fake("Zen", kind="CPU", width=16).capabilities
    assert (cpu.code_shape, cpu.host_memory, cpu.lanes, cpu.correct_division) == ("cpu", True, 16, True)
    assert cpu.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_kinds_differ_by_instruction_set() -> None:
    kinds = set()
    for target in ("znver3", "znver4"):
        device = fake("AMD EPYC", kind="CPU")
        device.handle.version = f"OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-{target}"
        kinds.add(Device(device.handle, SimpleNamespace(name="PoCL", version=POCL_3_0)).capabilities.kind)
    assert len(kinds) == 2


# -- real devices ---------------------------------------------------------------------------------


def test_real_devices_are_listed_once_and_share_their_context() -> None:
    assert [row.name for row in describe_devices()] == [device.capabilities.name for device in all_devices()]
    first, second = select_device("auto", False), select_device(describe_devices()[0].spec, False)
    contexts = []
    threads = [threading.Thread(target=lambda: contexts.append((first.context, second.queue))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(id(context), id(queue)) for context, queue in contexts}) == 1


def python(code: str, *, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # what Python 3.12 says of forks beside threads
from flowcompute.errors import RunError
from flowcompute.gpu.device.discovery import describe_devices, select_device
if sys.argv[-1] == "used":
    device = select_device("auto", False)
    device.context
child = os.fork()
if child == 0:
    tries = [lambda: select_device("auto", False), describe_devices]
    if sys.argv[-1] == "used":
        tries += [lambda: device.context, lambda: device.queue]
    for one in tries:
        try:
            one()
            print("worked")
        except RunError as error:
            print("refused", "spawn" in str(error))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork_devices_are_refused_and_spawn_is_named(tmp_path: object) -> None:
    code = FORK.replace("sys.argv[-1]", repr("used"))
    assert python(code, FLOWCOMPUTE_CACHE=str(tmp_path)).stdout.split("\n")[:-1] == ["refused True"] * 4


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_before_the_first_use_is_harmless(tmp_path: object) -> None:
    code = FORK.replace("sys.argv[-1]", repr("unused"))
    assert python(code, FLOWCOMPUTE_CACHE=str(tmp_path)).stdout.split("\n")[:-1] == ["worked"] * 2


WITHOUT = """
import sys
sys.modules["pyopencl"] = None
import flowcompute.gpu.opencl_backend, flowcompute.gpu.memory.device_buffers, flowcompute.gpu.device.discovery, flowcompute.gpu.device.programs
from flowcompute.errors import PlanError
for use in (lambda: flowcompute.gpu.device.discovery.select_device("auto", False), flowcompute.gpu.device.discovery.describe_devices):
    try:
        use()
    except PlanError as error:
        print(error)
"""


@pytest.mark.slow
def test_without_pyopencl_the_package_imports_and_the_first_use_says_what_to_install() -> None:
    said = python(WITHOUT).stdout
    assert said.count("pyopencl cannot be imported") == 2
    assert said.count("pip install pyopencl") == 2


def test_a_loader_without_drivers_means_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    code = cl.status_code.PLATFORM_NOT_FOUND_KHR

    def no_platforms() -> None:
        raise cl.LogicError(cl._cl._ErrorRecord(msg="", code=code, routine="clGetPlatformIDs"))

    monkeypatch.setattr(cl, "get_platforms", no_platforms)
    assert devices_module._listed() == ()
    code = cl.status_code.OUT_OF_HOST_MEMORY
    with pytest.raises(PlanError, match="cannot start the OpenCL loader: clGetPlatformIDs"):
        devices_module._listed()


def test_a_driver_without_its_hardware_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_devices() -> None:
        code = cl.status_code.DEVICE_NOT_FOUND
        raise cl.RuntimeError(cl._cl._ErrorRecord(msg="", code=code, routine="clGetDeviceIDs"))

    empty = SimpleNamespace(name="Empty", version="OpenCL 1.2", get_devices=no_devices)
    full = SimpleNamespace(name="Full", version="OpenCL 1.2", get_devices=lambda: [WHEEL.handle])
    monkeypatch.setattr(cl, "get_platforms", lambda: [empty, full])
    assert [device.platform for device in devices_module._listed()] == ["Full"]


LISTED = """
import os
from flowcompute.gpu.device.discovery import all_devices
before = {name: value for name, value in os.environ.items() if name.startswith("POCL")}
all_devices()
assert before == {name: value for name, value in os.environ.items() if name.startswith("POCL")}
print(os.environ["PYOPENCL_NO_CACHE"])
"""


@pytest.mark.slow
def test_settings_of_the_user_stay(tmp_path: object) -> None:
    own = {"PYOPENCL_NO_CACHE": "0", "POCL_CACHE_DIR": str(tmp_path)}
    assert python(LISTED, **own).stdout == "0\n"
    assert python(LISTED, FLOWCOMPUTE_CACHE=str(tmp_path)).stdout == "1\n"


def test_tensor_cores_are_nvidias_of_some_age() -> None:
    other = fake("NVIDIA A10", platform="NVIDIA CUDA", capability=(8, 6))
    assert [one.capabilities.tensor_cores for one in (DISCRETE, other, SMALLER, POCL_ON_CUDA)] == [
        True,
        True,
        False,
        False,
    ]
    assert DISCRETE.capabilities.local_bytes > other.capabilities.local_bytes == 48 << 10
