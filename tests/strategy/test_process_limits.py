"""The default budget, half of what the process's control groups let it have; and the cores that they let it have."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import flowcompute as fc
from flowcompute.strategy import core_limit, default_memory_bytes, process_limits, spare_memory_bytes

MIB = 1 << 20
MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
V1 = "36 32 0:31 {root} /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory"
V2 = "35 24 0:30 {root} /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
HYBRID = "36 32 0:31 {root} /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw"


def system(folder: Path, groups: str, mounts: str, limits: dict[str, object]) -> str:
    """A system with these groups of the process, mounts, and files below `sys/fs/cgroup`."""
    proc = folder / "proc" / "self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(groups)
    (proc / "mountinfo").write_text(f"22 28 0:21 / /proc rw - proc proc rw\n{mounts}\n")
    for name, limit in limits.items():
        path = folder / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{limit}\n")
    return str(folder)


@pytest.mark.parametrize(
    ("groups", "mounts", "limits", "mib"),
    [
        pytest.param("0::/\n", V2, {"memory.max": 64 * MIB}, 64, id="v2-container"),
        pytest.param("0::/a.slice/b.scope\n", V2, {"a.slice/b.scope/memory.max": 300 * MIB}, 300, id="v2-nested"),
        pytest.param(
            "0::/system.slice/job.service/inner\n",
            V2,
            {
                "system.slice/job.service/inner/memory.max": "max",
                "system.slice/job.service/memory.max": 200 * MIB,
                "system.slice/memory.max": 100 * MIB,
            },
            100,
            id="v2-above",
        ),
        pytest.param("0::/u\n", V2, {"u/memory.max": "max", "u/memory.high": 80 * MIB}, 80, id="v2-high"),
        pytest.param(
            "12:cpu,cpuacct:/x\n9:memory:/slurm/uid_7/job_9/step_0\n0::/x\n",
            V1,
            {
                "memory/slurm/uid_7/job_9/step_0/memory.limit_in_bytes": 9223372036854771712,
                "memory/slurm/uid_7/job_9/memory.limit_in_bytes": 512 * MIB,
                "memory/memory.limit_in_bytes": 9223372036854771712,
            },
            512,
            id="v1-slurm",
        ),
        pytest.param(
            "9:memory:/docker/abc/nested\n",
            V1.replace("{root}", "/docker/abc"),
            {"memory/nested/memory.limit_in_bytes": 300 * MIB, "memory/memory.limit_in_bytes": 400 * MIB},
            300,
            id="v1-container",
        ),
        pytest.param(
            "9:memory:/elsewhere\n",
            V1.replace("{root}", "/docker/abc"),
            {"memory/memory.limit_in_bytes": 400 * MIB},
            400,
            id="v1-outside",
        ),
        pytest.param("0::/../../other\n", V2, {"memory.max": 70 * MIB}, 70, id="v2-outside"),
        pytest.param(
            "9:memory:/a\n0::/a\n",
            f"{V1}\n{HYBRID}",
            {"memory/a/memory.limit_in_bytes": 90 * MIB, "unified/a/cgroup.procs": ""},
            90,
            id="hybrid",
        ),
        pytest.param(
            "0::/a b\n",
            V2.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/my\\040groups "),
            {"my groups/a b/memory.max": 60 * MIB},
            60,
            id="escaped",
        ),
        pytest.param("0::/a\n", V2, {"a/memory.max": "max", "memory.max": 0}, None, id="no-limit"),
        pytest.param("0::/a\n", V2, {"a/memory.max": 1 << 60}, None, id="more-than-the-machine"),
        pytest.param("garbage\n:\n", "garbage\n - \n", {}, None, id="garbage"),
    ],
)
def test_the_groups_of_the_process_count(
    tmp_path: Path, groups: str, mounts: str, limits: dict[str, object], mib: int | None
) -> None:
    found = default_memory_bytes(system(tmp_path, groups, mounts.replace("{root}", "/"), limits))
    assert found == (MACHINE if mib is None else mib * MIB) // 2


def test_a_system_without_groups_gives_half_of_the_machine(tmp_path: Path) -> None:
    assert default_memory_bytes(str(tmp_path)) == MACHINE // 2


@pytest.mark.parametrize(
    ("groups", "mounts", "limits", "cores"),
    [
        pytest.param("0::/\n", V2, {"cpu.max": "250000 100000"}, 2, id="v2-container"),
        pytest.param("0::/a/b\n", V2, {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3, id="v2-above"),
        pytest.param("0::/\n", V2, {"cpu.max": "20000 100000"}, 1, id="less-than-one"),
        pytest.param("0::/\n", V2, {"cpu.max": "max 100000"}, 8, id="v2-no-limit"),
        pytest.param("0::/\n", V2, {"cpu.max": "900000 0"}, 8, id="garbage"),
        pytest.param("0::/\n", V2, {"cpu.max": "6400000 100000"}, 8, id="more-than-it-may-run-on"),
        pytest.param(
            "4:memory:/m\n3:cpu,cpuacct:/docker/x\n",
            V1.replace("memory", "cpu"),
            {"cpu/docker/x/cpu.cfs_quota_us": 400000, "cpu/docker/x/cpu.cfs_period_us": 100000, "cpu/m/cpu.max": 1},
            4,
            id="v1",
        ),
        pytest.param(
            "3:cpu:/\n",
            V1.replace("memory", "cpu"),
            {"cpu/cpu.cfs_quota_us": -1, "cpu/cpu.cfs_period_us": 100000},
            8,
            id="v1-no-limit",
        ),
    ],
)
def test_quotas_of_the_groups_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, mounts: str, limits: dict[str, object], cores: int
) -> None:
    monkeypatch.setattr(process_limits, "own_cores", lambda: list(range(8)))
    assert core_limit(system(tmp_path, groups, mounts.replace("{root}", "/"), limits)) == cores


def test_what_is_spare_is_not_in_use(tmp_path: Path) -> None:
    assert spare_memory_bytes(str(tmp_path)) == 0, "nobody says"
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "self").mkdir()
    (tmp_path / "proc" / "self" / "statm").write_text("5000 700 300 1 0 99 0\n")
    assert spare_memory_bytes(str(tmp_path)) == MACHINE - 400 * os.sysconf("SC_PAGE_SIZE")


def test_a_limit_of_addresses_counts() -> None:
    limit = 3 << 30
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n"
        "from flowcompute.strategy import default_memory_bytes\nprint(default_memory_bytes('/nowhere'))"
    )
    root = Path(fc.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == str(min(MACHINE, limit, *_own_limits()) // 2), done.stderr


def _own_limits() -> list[int]:
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return [] if soft == resource.RLIM_INFINITY else [soft]
