# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers of build/fuzz for a while each, two at a time.

usage: fuzz.py SECONDS [NAME...]

A NAME is that of a program without `_fuzz`, as `view_gemini`; without names all
programs run. Each starts from its inputs in tests/testdata/fuzz, which stay as
they are. Prints a line for each, and at last one of JSON: how many fuzzers ran,
how often they executed their code, and how many crashed. What made one crash is
left in build/fuzz/crashes. Exits with 1 if any did.
"""

import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROGRAMS = _ROOT / "build" / "fuzz" / "bin"
_CRASHES = _ROOT / "build" / "fuzz" / "crashes"
_INPUTS = _ROOT / "tests" / "testdata" / "fuzz"
_SUFFIX = "_fuzz"

_INPUT_BYTES_MAX = 4096
_INPUT_SECONDS_MAX = 10
_MEMORY_MIB_MAX = 3000
# What a fuzzer may take beyond its time: to start, and for its last input.
_GRACE_SECONDS = 120


class Run(NamedTuple):
    name: str
    executions: int
    new_inputs: int
    crashed: bool


def executions_of(output: str) -> int:
    """The executions that libFuzzer's final statistics name; 0 without them."""
    found = re.findall(r"^stat::number_of_executed_units:\s*(\d+)", output, re.M)
    return int(found[-1]) if found else 0


def programs(names: list[str]) -> list[pathlib.Path]:
    """The programs called `names`, or all, by name. Raises SystemExit if one is
    not there."""
    built = {p.name.removesuffix(_SUFFIX): p for p in _PROGRAMS.glob("*" + _SUFFIX)}
    unknown = [name for name in names if name not in built]
    if unknown or not built:
        raise SystemExit(f"not built: {', '.join(unknown) or 'any fuzzer'}")
    return [built[name] for name in sorted(names or built)]


def run(program: pathlib.Path, seconds: int) -> Run:
    name = program.name.removesuffix(_SUFFIX)
    with tempfile.TemporaryDirectory() as folder:
        inputs = pathlib.Path(folder) / "inputs"
        shutil.copytree(_INPUTS / name, inputs)
        kept = len(list(inputs.iterdir()))
        command = [
            program,
            f"-max_total_time={seconds}",
            f"-max_len={_INPUT_BYTES_MAX}",
            f"-timeout={_INPUT_SECONDS_MAX}",
            f"-rss_limit_mb={_MEMORY_MIB_MAX}",
            f"-artifact_prefix={_CRASHES}/{name}-",
            "-print_final_stats=1",
            inputs,
        ]
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=seconds + _GRACE_SECONDS,
                check=False,
            )
            output, crashed = done.stderr, done.returncode != 0
        except subprocess.TimeoutExpired as expired:
            output, crashed = expired.stderr or b"", True
        text = output.decode(errors="replace")
        if crashed:
            (_CRASHES / f"{name}.log").write_text(text)
        new_inputs = len(list(inputs.iterdir())) - kept
    return Run(name, executions_of(text), new_inputs, crashed)


def main(arguments: list[str]) -> int:
    if not arguments or not arguments[0].isdigit() or int(arguments[0]) == 0:
        raise SystemExit("usage: fuzz.py SECONDS [NAME...]")
    seconds = int(arguments[0])
    chosen = programs(arguments[1:])
    _CRASHES.mkdir(exist_ok=True)
    print(f"{'fuzzer':<32}{'executions':>12}{'new inputs':>12}")
    runs = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for one in pool.map(lambda program: run(program, seconds), chosen):
            runs.append(one)
            print(
                f"{one.name:<32}{one.executions:>12}{one.new_inputs:>12}"
                f"{'  crashed' if one.crashed else ''}",
                flush=True,
            )
    crashes = sum(one.crashed for one in runs)
    summary = {
        "fuzzers": len(runs),
        "executions": sum(one.executions for one in runs),
        "crashes": crashes,
    }
    print(json.dumps(summary))
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
