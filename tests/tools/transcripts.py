# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the transcripts are that tests and evidence are tried on.

Beside the repository, in `../shared/transcripts`, or where
$CLERESTORY_TRANSCRIPTS says; without them, the one that the repository brings.
"""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(
    os.environ.get("CLERESTORY_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts")
)
FIXTURES = ROOT / "tests" / "testdata" / "transcripts"

# Where the kinds that can be read lie; `other` has those with a file or two.
FOLDERS = [
    "claude-code",
    "anthropic",
    "openai-chat",
    "swe-agent",
    "mini-swe-agent",
    "codex",
    "gemini",
    "cline",
    "openhands",
    "other",
]
# Those that are a provider's own messages array.
ARRAY_FOLDERS = ["anthropic", "openai-chat"]


def fixtures() -> list[pathlib.Path]:
    return sorted(p for p in FIXTURES.iterdir() if p.suffix in (".json", ".jsonl"))


def files(folders: list[str] = FOLDERS) -> list[pathlib.Path]:
    """All transcripts that can be read, in a fixed order.

    A folder of events, a JSON file for each, is one transcript.
    """
    found = [
        path
        for folder in folders
        for path in sorted((SHARED / folder).glob("*"))
        if path.is_file() or any(path.glob("*.json"))
    ]
    return found or fixtures()


def size_of(path: pathlib.Path) -> int:
    """Bytes of a transcript: of a folder, those of its events."""
    if path.is_file():
        return path.stat().st_size
    return sum(event.stat().st_size for event in path.glob("*.json"))
