# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""An agent that reads files, and reads some of them again when it cannot see them.

Its files never change. `Read` gives a file of 60 lines; `Lookup` gives an answer
that is never asked for again.
"""

import json
import random

from python_client import user

LINES = 60


def file_text(number):
    return "".join(f"file {number} line {line} says {line * number}\n" for line in range(LINES))


class RefetchingAgent:
    """One session. Every turn it reads a file and looks something up; then, with
    the probability `refetch_rate`, it reads again a file that the view masks."""

    def __init__(self, client, session_id, refetch_rate, seed=1, files_from=0, **header):
        self.client = client
        self.session_id = session_id
        self.refetch_rate = refetch_rate
        self.random = random.Random(seed)
        self.next_file = files_from
        self.call_count = 0
        self.seen = {}  # The file of each observation of Read, by its text's id.
        self.pending = [user("do the task")]
        self.answer = None
        client.create(session_id, **header)

    def _turn(self, calls):
        """Makes the calls, (tool, input, output) each, in one message."""
        ids = []
        for _ in calls:
            self.call_count += 1
            ids.append(f"call_{self.call_count}")
        blocks = [
            {"type": "tool_use", "id": each, "name": tool, "input": arguments}
            for each, (tool, arguments, _) in zip(ids, calls)
        ]
        results = [
            {"type": "tool_result", "tool_use_id": each, "content": output}
            for each, (_, _, output) in zip(ids, calls)
        ]
        self.pending += [
            json.dumps({"role": "assistant", "content": blocks}).encode(),
            json.dumps({"role": "user", "content": results}).encode(),
        ]
        self.answer = self.client.build(self.session_id, self.pending)
        self.pending = []
        return self.answer

    def _masked_files(self):
        """The files that the view does not show at all."""
        shown = b"".join(self.answer.messages).decode()
        return [
            number
            for number in range(self.next_file)
            if number in self.seen and f"file {number} line 1 says" not in shown
        ]

    def go_on(self, turns):
        for _ in range(turns):
            number = self.next_file
            self.next_file += 1
            self.seen[number] = True
            self._turn(
                [
                    ("Read", {"file_path": f"/src/f{number}"}, file_text(number)),
                    (
                        "Lookup",
                        {"key": f"k{number}"},
                        f"answer {number} " * 40,
                    ),
                ]
            )
            masked = self._masked_files()
            if masked and self.random.random() < self.refetch_rate:
                again = self.random.choice(masked)
                self._turn(
                    [("Read", {"file_path": f"/src/f{again}"}, file_text(again))]
                )
        return self.answer

    def masked_tools(self):
        """How many observations of each tool are masked now, by the service."""
        counts = {}
        for observation in self.client.observations(self.session_id):
            if observation.HasField("placeholder"):
                counts[observation.tool] = counts.get(observation.tool, 0) + 1
        return counts
