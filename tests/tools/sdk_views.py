# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether the vendors' own libraries take random views of random sessions.

usage: sdk_views.py PROGRAM [SEEDS [FIRST_SEED]]

PROGRAM is clerestory_random_views. Prints one JSON object, which is what
check_formats() returns. Exits with 1 if anything was refused.
"""

import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import sdk_types

# What checks the messages of each format.
CHECKS = {
    "ANTHROPIC_MESSAGES": sdk_types.check_anthropic,
    "OPENAI_CHAT": sdk_types.check_chat,
    "OPENAI_RESPONSES": sdk_types.check_responses,
    "GEMINI": sdk_types.check_gemini,
    "BEDROCK_CONVERSE": sdk_types.check_converse,
}


def views_of(
    program: pathlib.Path | str, wire_format: str, seeds: int, first_seed: int = 1
) -> Iterator[dict]:
    """What the program says of `seeds` sessions: an object for each view.

    The messages in it are strings.
    """
    command = [
        *(str(program), "--plain"),
        *("--format", wire_format),
        *("--seed", str(first_seed)),
        *("--count", str(seeds)),
    ]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    for line in run.stdout.splitlines():
        yield json.loads(line)


def check_format(
    program: pathlib.Path | str, wire_format: str, seeds: int, first_seed: int = 1
) -> dict:
    """What the library of the format says about the views of `seeds` sessions.

    Returns how many histories and views it was asked about, of which it refused
    `refused`, with what it said about some in `errors`. Of the views `masked`
    differ from their histories: with none, nothing was tried.
    """
    counts = {"histories": 0, "views": 0, "refused": 0, "masked": 0}
    errors = []
    for entry in views_of(program, wire_format, seeds, first_seed):
        counts["histories"] += 1
        counts["views"] += 1
        counts["masked"] += entry["view"] != entry["history"]
        for kind in ("history", "view"):
            try:
                CHECKS[wire_format]([json.loads(text) for text in entry[kind]])
            except ValueError as error:
                counts["refused"] += 1
                errors.append(f"{wire_format} seed {entry['seed']} {kind}: {error}")
    return {**counts, "errors": errors[:10]}


def check_formats(
    program: pathlib.Path | str, seeds: int, first_seed: int = 1
) -> dict:
    """The same of all formats together, each of which has `seeds` sessions."""
    total = {"histories": 0, "views": 0, "refused": 0, "masked": 0, "errors": []}
    for wire_format in CHECKS:
        found = check_format(program, wire_format, seeds, first_seed)
        total = {key: total[key] + value for key, value in found.items()}
    return total


def main(program: str, seeds: str = "60", first_seed: str = "1") -> int:
    total = check_formats(program, int(seeds), int(first_seed))
    print(json.dumps(total))
    return 1 if total["refused"] else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
