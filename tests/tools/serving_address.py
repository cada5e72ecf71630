# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prints the address that a server's log says it serves on.

usage: serving_address.py LOG

Exits with 1 if the log does not say so (yet).
"""

import json
import sys


def address_in(lines: list[str]) -> str | None:
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("event") == "serving":
            return entry.get("address")
    return None


def main() -> int:
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        address = address_in(log.readlines())
    if not address:
        return 1
    print(address)
    return 0


if __name__ == "__main__":
    sys.exit(main())
