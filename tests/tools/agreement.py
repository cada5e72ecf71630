# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cost model of another implementation, on Claude Code's sessions.

`realsim.py`, if it lies beside the transcripts, has a cost model of its own, with
policies and the offline optimum. It counts some things in other ways; here its
sessions are made so that both model the same thing:

- a picture is 1,568 tokens, and not the characters of its base64;
- tool calls are counted as they are written, with their names;
- prompts of the user are input, not output;
- what the client made up itself (`<synthetic>`) is left out, and the first prompt
  is part of the preamble.
"""

import json
import pathlib
import sys

import transcripts

TOOLS = transcripts.SHARED.parent / "tools"
IMAGE_TOKENS = 1568
PREAMBLE_TOKENS = 12_000
OUTPUT_USD = 15e-6
TURNS_MIN = 15


def available() -> bool:
    return (TOOLS / "realsim.py").exists()


def _tokens(text: str | None) -> int:
    return max(1, len(text) // 4) if text else 0


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _result_tokens(content: object) -> int:
    if isinstance(content, str):
        return _tokens(content)
    total = 0
    for block in content or []:
        if block.get("type") == "image":
            total += IMAGE_TOKENS
        elif block.get("type") == "text":
            total += _tokens(block.get("text"))
        else:
            total += _tokens(_compact(block))
    return total


class _Session:
    """A transcript as turns: what each adds, and the outputs of its tools."""

    def __init__(self, path: pathlib.Path):
        self.turns = []
        self.preamble = PREAMBLE_TOKENS
        self.user_tokens = 0
        self._by_id = {}
        self._calls = {}
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                if record.get("type") in ("user", "assistant"):
                    if not record.get("isSidechain"):
                        self._add(record)

    def _add(self, record: dict) -> None:
        message = record.get("message") or {}
        if message.get("model") == "<synthetic>":
            return
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content or []:
            if message["role"] == "assistant":
                self._add_answer(message["id"], record["timestamp"], block)
            elif block.get("type") == "tool_result":
                turn = self._calls.get(block["tool_use_id"])
                if turn is not None:
                    turn["o"].append(_result_tokens(block.get("content")))
            else:
                self._add_prompt(block)

    def _add_answer(self, name: str, time: str, block: dict) -> None:
        if name not in self._by_id:
            self._by_id[name] = {"id": name, "a": 0, "o": [], "ts": time}
            self.turns.append(self._by_id[name])
        turn = self._by_id[name]
        if block.get("type") == "tool_use":
            turn["a"] += _tokens(block["name"]) + _tokens(_compact(block["input"]))
            self._calls[block["id"]] = turn
        else:
            turn["a"] += _tokens(block.get("text") or block.get("thinking"))

    def _add_prompt(self, block: dict) -> None:
        is_image = block.get("type") == "image"
        tokens = IMAGE_TOKENS if is_image else _tokens(block.get("text"))
        if self.turns:
            self.turns[-1]["a"] += tokens
            self.user_tokens += tokens
        else:
            self.preamble += tokens


def their_ratios(path: pathlib.Path) -> dict | None:
    """Costs of a session as parts of raw, as realsim.py counts them; None if the
    session has too few turns for it."""
    sys.path.insert(0, str(TOOLS))
    import realsim  # pylint: disable=import-outside-toplevel,import-error

    session = _Session(path)
    if len(session.turns) < TURNS_MIN:
        return None
    costs = realsim.c
    model = realsim.R(session.turns, B=session.preamble)
    prompts = session.user_tokens * OUTPUT_USD
    raw = costs.cost(model, costs.raw)[0] - prompts
    return {
        "turns": len(session.turns),
        "raw": raw,
        "every_turn": (costs.cost(model, costs.every(10))[0] - prompts) / raw,
        "rent_or_buy": (costs.cost(model, costs.ski(10))[0] - prompts) / raw,
        "optimum": (costs.opt(model, 10) - prompts) / raw,
    }
