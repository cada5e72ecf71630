# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server as a process: settings, starting, stopping, being killed."""

import subprocess
import threading

import grpc
import pytest

import server_process
from python_client import Client, call, result, user
from server_process import BIN


def run_server(*args: str, timeout: float = 20) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(BIN / "clerestory-server"), *args],
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--no-such-flag"], "no-such-flag"),
        (["--worker-threads", "0"], "worker_threads: expected a whole number from 1"),
        (["--worker-threads", "many"], "worker_threads: expected a whole number"),
        (["--store", "tape"], "store: expected rocksdb or memory"),
        (["--listen", "0.0.0.0:7171"], "can be reached from other machines"),
        (["--policy", "sometimes"], 'unknown value "sometimes"; use off, adaptive'),
        (["--policy", "block,block_size=0"], "block_size: expected a whole number"),
        (["--config", "no-such-file.yaml"], "cannot read no-such-file.yaml"),
    ],
)
def test_a_wrong_flag_is_an_error_before_anything_starts(args, says, tmp_path):
    ran = run_server(*args, "--data-dir", str(tmp_path / "data"))
    assert ran.returncode != 0
    assert says in ran.stdout + ran.stderr
    assert not (tmp_path / "data").exists()


def test_every_wrong_key_of_the_configuration_is_named_with_its_place(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "listen: 127.0.0.1:0\n"
        "colour: blue\n"
        "worker_threads: -1\n"
        "policy:\n"
        "  mode: adaptive\n"
        "  keep_observations: 2\n"
        "  shade: dark\n"
    )
    ran = run_server("--config", str(config))
    assert ran.returncode != 0
    assert f'{config}:2:1: unknown key "colour"; use listen' in ran.stderr
    assert f"{config}:3:17: worker_threads: expected" in ran.stderr
    assert f"{config}:6:22: keep_observations: expected a whole number" in ran.stderr
    assert "shade: no such field of a policy" in ran.stderr


def test_settings_come_from_the_file_and_flags_win(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("store: memory\npolicy:\n  mode: every_turn\n")
    with server_process.Server(
        tmp_path / "server", "--config", str(config), "--development"
    ) as server:
        serving = next(e for e in server.entries() if e["event"] == "serving")
    assert serving["store"] == "memory"
    assert serving["policy"] == "every_turn"
    assert serving["development"] is True


def test_sigterm_lets_calls_end_and_exits_with_0(tmp_path):
    failures = []
    with server_process.Server(tmp_path) as server:
        with grpc.insecure_channel(server.address) as channel:
            client = Client(channel)
            client.create("s")
            stop = threading.Event()
            acknowledged = [0]

            def append():
                while not stop.is_set():
                    try:
                        answer = client.append(
                            "s", [user(str(acknowledged[0]))], acknowledged[0]
                        )
                        acknowledged[0] = answer.next_sequence
                    except grpc.RpcError as error:
                        if error.code() != grpc.StatusCode.UNAVAILABLE:
                            failures.append(error)
                        return

            writer = threading.Thread(target=append)
            writer.start()
            while acknowledged[0] < 50:
                assert writer.is_alive()
            assert server.stop() == 0
            stop.set()
            writer.join()
        assert not failures
        events = [entry["event"] for entry in server.entries()]
        assert events[-2:] == ["draining", "stopped"]
        server.start()
        with grpc.insecure_channel(server.address) as channel:
            history = Client(channel).read("s")
    assert len(history) >= acknowledged[0]
    assert history == [user(str(i)) for i in range(len(history))]


def test_a_second_server_on_the_same_data_is_refused(tmp_path):
    with server_process.Server(tmp_path) as server:
        second = run_server(
            "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")
        )
        assert second.returncode != 0
        assert "another server" in second.stderr or "in use" in second.stderr
        taken = run_server("--listen", server.address, "--store", "memory")
        assert taken.returncode != 0
        assert "cannot listen on" in taken.stderr


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path):
    with server_process.Server(tmp_path) as server:
        acknowledged = 0
        for _ in range(5):
            with grpc.insecure_channel(server.address) as channel:
                client = Client(channel)
                if acknowledged == 0:
                    client.create("s")
                done = threading.Event()

                def append(client=client, done=done):
                    nonlocal acknowledged
                    try:
                        while True:
                            answer = client.append(
                                "s", [user(str(acknowledged))], acknowledged
                            )
                            acknowledged = answer.next_sequence
                            if acknowledged % 40 == 0:
                                done.set()
                    except grpc.RpcError:
                        done.set()

                writer = threading.Thread(target=append)
                writer.start()
                done.wait()
                server.kill()
                writer.join()
            server.start()
            with grpc.insecure_channel(server.address) as channel:
                history = Client(channel).read("s")
            # One more than was acknowledged may be there: its answer was lost.
            assert acknowledged <= len(history) <= acknowledged + 1
            assert history == [user(str(i)) for i in range(len(history))]
            acknowledged = len(history)


def test_views_are_the_same_after_a_restart(tmp_path):
    with server_process.Server(tmp_path, "--policy", "block,block_size=5") as server:
        with grpc.insecure_channel(server.address) as channel:
            client = Client(channel)
            client.create("s")
            for turn in range(30):
                client.build("s", [call(turn), result(turn, "output " * 500)])
            before = client.build("s")
        assert b"tool output masked" in b"".join(before.messages)
        server.kill()
        server.start()
        with grpc.insecure_channel(server.address) as channel:
            after = Client(channel).build("s")
    assert after.messages == before.messages
    assert after.report.whole.digest == before.report.whole.digest
