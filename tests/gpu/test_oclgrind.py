"""Kernels under oclgrind, where it is installed: a few families are clean, and what is broken is reported."""

from __future__ import annotations

import shutil

import pytest

from tests.gpu.oclgrind_runs import main, reports, spelled_out

needs_oclgrind = pytest.mark.skipif(
    shutil.which("oclgrind") is None, reason="oclgrind is not installed (Debian and Ubuntu: apt-get install oclgrind)"
)


@pytest.mark.slow
@needs_oclgrind
@pytest.mark.parametrize(("family", "shape"), [("short rows", "cpu"), ("rows", "gpu")])
def test_a_family_is_clean(family: str, shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([family, "--shape", shape, "--size", "33"]) == 0
    assert capsys.readouterr().out.count("  clean\n") == 1


@pytest.mark.slow
@needs_oclgrind
def test_a_barrier_that_is_left_out_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rows", "--shape", "gpu", "--size", "5", "--without", "barrier(CLK_LOCAL_MEM_FENCE);"]) == 1
    assert "data race at local memory" in capsys.readouterr().out


def test_upper_parts_of_vectors_of_16_are_spelled_out() -> None:
    text = "float16 v1 = x; float8 v2 = v1.hi; float4 v3 = v2.hi; v1.odd = v2; int16 all; *w = all.s89;"
    wanted = "float16 v1 = x; float8 v2 = (float8)(v1.s8, v1.s9, v1.sa, v1.sb, v1.sc, v1.sd, v1.se, v1.sf); "
    assert spelled_out(text) == wanted + "float4 v3 = v2.hi; v1.odd = v2; int16 all; *w = (int2)(all.s8, all.s9);"


def test_a_report_is_told_once_with_its_place() -> None:
    said = "\nInvalid read of size 4 at global memory address {}\n\tKernel: k0\n\tAt line 7 (column 3) of input.cl:\n\t  x\n\t\n"
    told = reports(said.format("0x10") + "3 warnings generated.\n" + said.format("0x20"))
    assert told == ["Invalid read of size 4 at global memory address ... At line 7 (column 3) of input.cl: x"]


def test_what_pyopencl_asks_for_is_no_report() -> None:
    said = "\nOclgrind - OpenCL runtime error detected\n\tFunction: clCreateKernel\n\tError: CL_INVALID\n\tKernel '{}' not found\n\n"
    assert not reports(said.format("_source"))
    assert len(reports(said.format("k0"))) == 1
