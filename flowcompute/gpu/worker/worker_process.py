"""Worker process that owns the driver for an executor, so that a faulty kernel harms that process alone.

It ends with this process, however this one ends. It ends when the socket is closed. On Linux the kernel also
sends it a signal when the thread that started it ends. Nothing of it has a name in the file system.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.engine import check_stopped
from flowcompute.errors import DeviceError, DeviceFullError, FlowError, KernelError
from flowcompute.gpu.device import Device, all_devices
from flowcompute.gpu.worker.messages import receive, send

_POLL_INTERVAL_S = 0.1
_CLOSE_TIMEOUT_S = 5.0

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from flowcompute.gpu.worker.serve import serve; serve(int(sys.argv[2]), int(sys.argv[3]))"
)

_ERRORS = {kind.__name__: kind for kind in (DeviceError, DeviceFullError, KernelError)}

_PARTS = ("expected", "got", "hint")


def opening(device: Device, staging_bytes: int = 0, device_bytes: int | None = None) -> dict[str, Any]:
    """Return the first message of a worker: the device that it uses.

    Args:
        device: of this process.
        staging_bytes, device_bytes: as of `LocalLauncher`.
    """
    return {
        "do": "open",
        "position": [one.handle for one in all_devices()].index(device.handle),
        "kind": device.capabilities.kind,
        "host_memory": device.capabilities.host_memory,
        "options": list(device.build_options),
        "staging": staging_bytes,
        "device_budget": device_bytes,
    }


def building(text: str, name: str, types: Sequence[np.dtype | None]) -> dict[str, Any]:
    """Return the message that asks for a kernel; arguments as of `Launcher.build`."""
    return {"do": "build", "text": text, "name": name, "types": [None if one is None else one.name for one in types]}


class Worker:
    """A process that handles one message after the other. One thread may use it at a time.

    Args:
        name: of its device, for errors.

    Raises:
        DeviceError: if it does not start.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(_POLL_INTERVAL_S)
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: str | None = None
        started: queue.SimpleQueue[subprocess.Popen[bytes] | Exception] = queue.SimpleQueue()
        # The kernel sends its signal when the starting thread ends. This thread lives as long as the worker.
        self._coordinator = threading.Thread(
            target=_run_worker, args=(theirs.fileno(), started), name="flowcompute-isolated", daemon=True
        )
        try:
            self._coordinator.start()
        except RuntimeError as error:
            # A limit of threads or processes.
            self._channel.close()
            theirs.close()
            raise DeviceError(f"cannot start the worker process of {name}: {error}") from error
        process = started.get()
        theirs.close()
        if isinstance(process, Exception):
            self.close()
            raise DeviceError(f"cannot start the worker process of {name}: {process}") from process
        self._process = process

    def tell(self, message: Mapping[str, Any], file: int | None = None) -> None:
        """Send a message that has no answer.

        Raises:
            DeviceError: if the worker is gone.
        """
        try:
            send(self._channel, message, file, check_stopped)
        except OSError as error:
            raise self._failed() from error
        except BaseException:
            # The run was cancelled in the middle of a message.
            self._kill("its process was killed when the run was stopped")
            raise

    def ask(self, message: Mapping[str, Any], limit_s: float | None = None) -> dict[str, Any]:
        """Send a message and wait for the answer.

        Args:
            message: plain data.
            limit_s: seconds after which the worker is killed.

        Raises:
            DeviceError: if the worker is gone, does not answer in time, or reports this error.
            KernelError: if the worker reports it.
        """
        self.tell(message)
        deadline = None if limit_s is None else time.monotonic() + limit_s

        def check() -> None:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            check_stopped()

        try:
            answer, _ = receive(self._channel, check)
        except TimeoutError:
            self._kill(f"a launch took longer than launch_timeout_s={limit_s:g}, and its process was killed")
            raise self._failed("give launch_timeout_s= more seconds, if the kernel is only slow") from None
        except EOFError:
            raise self._failed() from None
        except Exception as error:
            self._kill(f"its process was killed, since its answer cannot be read: {error}")
            raise self._failed() from error
        except BaseException:
            # A late answer must not be taken for the next one.
            self._kill("its process was killed when the run was stopped")
            raise
        if "error" in answer:
            raise _error_of(answer)
        return answer

    def _failed(self, hint: str = "look for what the kernel does outside of its buffers") -> DeviceError:
        self._coordinator.join(_CLOSE_TIMEOUT_S)
        code = None if self._process is None else self._process.returncode
        ended = self._ended or f"its process ended: {_describe_exit(code)}"
        return DeviceError(
            f"cannot run on device {self._name}: its worker process failed",
            expected="a kernel that ends",
            got=ended,
            hint=f"{hint}; with checkpoint= the job goes on from its last checkpoint",
        )

    def _kill(self, why: str) -> None:
        self._ended = why
        if self._process is not None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        """Ask the process to end, and wait for it. Calling it twice does nothing."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._channel.close()
        self._coordinator.join(_CLOSE_TIMEOUT_S)
        if self._coordinator.is_alive() and self._process is not None:
            self._process.kill()
            self._coordinator.join()


def _run_worker(handle: int, started: queue.SimpleQueue[subprocess.Popen[bytes] | Exception]) -> None:
    """Start the worker and wait until it has ended."""
    try:
        arguments = [json.dumps([str(place) for place in sys.path]), str(handle), str(os.getpid())]
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and text
            [sys.executable, "-c", _START, *arguments],
            stdin=subprocess.DEVNULL,
            pass_fds=(handle,),
            # Ctrl-C in a terminal is for this process, which then ends the worker.
            process_group=0,
        )
    except Exception as error:  # noqa: BLE001 - raised by the thread that waits
        started.put(error)
        return
    started.put(process)
    process.wait()


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "its exit code is unknown"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _error_of(answer: Mapping[str, Any]) -> FlowError:
    """Return the error that a worker reports."""
    kind = _ERRORS.get(str(answer["error"]), DeviceError)
    expected, got, hint = (None if answer.get(name) is None else str(answer[name]) for name in _PARTS)
    return kind(str(answer.get("message")), expected=expected, got=got, hint=hint)
