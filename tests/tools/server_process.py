# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Real servers and the command line client, for tests and evidence.

The programs are those in $CLERESTORY_BIN.
"""

import json
import os
import pathlib
import signal
import subprocess
import time

BIN = pathlib.Path(os.environ["CLERESTORY_BIN"])
START_SECONDS = 30


class Server:
    """A clerestory-server process, with its log in a file beside its data.

    It gets a free port at each start; with `fixed`, a Unix socket, where clients
    find it again. (A port in the range of free ones may be gone by then: to
    whoever tries to connect to it, of all.)
    """

    def __init__(self, folder: pathlib.Path, *args: str, fixed: bool = False):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.args = args
        self.listen = f"unix:{self.folder}/socket" if fixed else "127.0.0.1:0"
        self.log = self.folder / "server.log"
        self.process = None
        self.address = ""

    def start(self) -> "Server":
        command = [
            str(BIN / "clerestory-server"),
            *("--listen", self.listen),
            *("--data-dir", str(self.folder / "data")),
            *self.args,
        ]
        begin = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            for entry in self.entries(begin):
                if entry["event"] == "serving":
                    self.address = entry["address"]
                    return self
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"no server: {self.log.read_text()[begin:]}")

    def entries(self, begin: int = 0) -> list[dict]:
        """The whole lines of the log from a byte on; each must be JSON."""
        text = self.log.read_bytes()[begin:].decode()
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def kill(self) -> None:
        """As the machine would: without a word."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 30) -> int:
        """As an operator would; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *_) -> None:
        if self.process and self.process.poll() is None:
            self.kill()


def client(*args: str, **kwargs) -> subprocess.CompletedProcess:
    """Runs the command line client to its end."""
    return subprocess.run(
        [str(BIN / "clerestory"), *args], capture_output=True, text=True, **kwargs
    )


def start_client(*args: str, **kwargs) -> subprocess.Popen:
    return subprocess.Popen([str(BIN / "clerestory"), *args], **kwargs)
