#!/usr/bin/env python3
"""tandem serve and tandem config as a user types them: what is refused and how, exit codes, one and
two ranks with the bundled model, Ctrl-C before and after it is ready, a killed rank, idle CPU.

usage: serve_verb_test.py TANDEM MODEL
"""
import http.client
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TANDEM, MODEL = sys.argv[1], sys.argv[2]
READY_S = 120
STOP_S = 40


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*words):
    done = subprocess.run([TANDEM, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def children_of(pid):
    """All processes below pid."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(entry.name), *children_of(int(entry.name))]
    return found


def is_rank(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"rank" in words[1:2]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, *flags):
        self.port = free_port()
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [TANDEM, "serve", "--model", MODEL, "--port", str(self.port), "--max-context-tokens", "2048",
             "--kv-tokens", "4096", "--max-sequences", "2", "--threads", "1", *flags],
            stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def request(self, method, path, body=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def wait_ready(self):
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.text()}")
            try:
                if self.request("GET", "/health")[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"not ready after {READY_S} s:\n{self.text()}")

    def chat(self, **fields):
        body = {"model": "nano", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8,
                "temperature": 0, **fields}
        status, text = self.request("POST", "/v1/chat/completions", body)
        return status, json.loads(text)

    def ranks(self):
        return [pid for pid in children_of(self.process.pid) if is_rank(pid)]


class OtherProgram(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


class Refusals(unittest.TestCase):
    def test_no_model(self):
        code, _, err = run("serve")
        self.assertEqual(code, 2)
        self.assertIn("model is not set", err)

    def test_every_bad_value_is_named(self):
        code, _, err = run("serve", "--model", MODEL, "--tp", "3", "--numerics", "fast", "--port", "70000")
        self.assertEqual(code, 2)
        for word in ("tp = 3", "numerics = 'fast'", "port = 70000"):
            self.assertIn(word, err)

    def test_missing_folder(self):
        code, _, err = run("serve", "--model", "/nonexistent/model")
        self.assertEqual(code, 1)
        self.assertIn("/nonexistent/model", err)

    def test_folder_without_tokenizer(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in pathlib.Path(MODEL).iterdir():
                if file.name != "tokenizer.json":
                    os.symlink(file.resolve(), pathlib.Path(folder) / file.name)
            code, _, err = run("serve", "--model", folder, "--port", str(free_port()))
        self.assertEqual(code, 1)
        self.assertIn("tokenizer.json", err)

    def test_damaged_shard(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in pathlib.Path(MODEL).iterdir():
                shutil.copy(file, pathlib.Path(folder) / file.name)
            shard = sorted(pathlib.Path(folder).glob("*.safetensors"))[0]
            with open(shard, "r+b") as data:
                data.truncate(shard.stat().st_size - 1000)
            code, _, err = run("serve", "--model", folder, "--port", str(free_port()))
        self.assertEqual(code, 1)
        self.assertIn(shard.name, err)

    def test_too_much_memory(self):
        code, _, err = run("serve", "--model", MODEL, "--port", str(free_port()), "--kv-tokens", "4000000000")
        self.assertEqual(code, 1)
        self.assertIn("available", err)
        self.assertIn("kv_tokens", err)

    def test_port_of_another_program(self):
        other = http.server.HTTPServer(("127.0.0.1", 0), OtherProgram)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        code, _, err = run("serve", "--model", MODEL, "--port", str(other.server_port))
        other.shutdown()
        other.server_close()
        self.assertEqual(code, 4)
        self.assertIn(str(other.server_port), err)

    def test_public_address_without_key(self):
        code, _, err = run("serve", "--model", MODEL, "--host", "0.0.0.0", "--port", str(free_port()))
        self.assertNotEqual(code, 0)
        self.assertIn("key", err)

    def test_config_names_sources(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("port = 9001\nmax_sequences = 4\n")
            file.flush()
            code, out, _ = run("config", "--model", MODEL, "--config", file.name, "--port", "9002")
        self.assertEqual(code, 0)
        lines = {line.split(" = ")[0]: line for line in out.splitlines()}
        self.assertIn("9002  # flag", lines["port"])
        self.assertIn("4  # file", lines["max_sequences"])
        self.assertIn("# default", lines["host"])

    def test_unknown_key_in_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("prot = 9001\n")
            file.flush()
            code, _, err = run("serve", "--model", MODEL, "--config", file.name)
        self.assertEqual(code, 2)
        self.assertIn("unknown key 'prot'", err)


class OneRank(unittest.TestCase):
    def test_serves_and_stops(self):
        with Server() as server:
            server.wait_ready()
            status, reply = server.chat()
            self.assertEqual(status, 200)
            self.assertEqual(reply["usage"]["completion_tokens"] > 0, True)
            code, _, err = run("serve", "--model", MODEL, "--port", str(server.port))
            self.assertEqual(code, 3, err)
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(STOP_S), 0)
            self.assertIn("stopped", server.text())

    def test_stop_ends_a_running_stream(self):
        with Server() as server:
            server.wait_ready()
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            body = {"model": "nano", "stream": True, "ignore_eos": True, "max_tokens": 1500,
                    "messages": [{"role": "user", "content": "Hello"}]}
            connection.request("POST", "/v1/chat/completions", json.dumps(body),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            self.assertTrue(response.read(64))
            server.process.send_signal(signal.SIGTERM)
            response.read()  # the stream ends; it does not hang
            connection.close()
            self.assertEqual(server.process.wait(STOP_S), 0)


class TwoRanks(unittest.TestCase):
    def test_same_answer_as_one_rank_idle_and_stop(self):
        with Server() as one:
            one.wait_ready()
            expected = one.chat()[1]["choices"]
        with Server("--tp", "2") as server:
            server.wait_ready()
            self.assertEqual(server.chat()[1]["choices"], expected)
            ranks = server.ranks()
            self.assertEqual(len(ranks), 2)
            time.sleep(1)
            before = [cpu_seconds(pid) for pid in ranks]
            time.sleep(4)
            used = [cpu_seconds(pid) - start for pid, start in zip(ranks, before)]
            self.assertLess(max(used) / 4, 0.02, f"idle ranks used {used} s of CPU in 4 s")
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(STOP_S), 0)
            self.assertFalse([pid for pid in ranks if is_rank(pid)])

    def test_killed_rank_ends_the_job(self):
        with Server("--tp", "2") as server:
            server.wait_ready()
            os.kill(server.ranks()[-1], signal.SIGKILL)
            self.assertNotEqual(server.process.wait(10), 0)

    def test_killed_launcher_takes_the_ranks_along(self):
        with Server("--tp", "2") as server:
            server.wait_ready()
            ranks = server.ranks()
            server.process.kill()
            server.process.wait()
            end = time.monotonic() + 10
            while any(is_rank(pid) for pid in ranks) and time.monotonic() < end:
                time.sleep(0.1)
            self.assertFalse([pid for pid in ranks if is_rank(pid)])

    def test_interrupt_while_loading(self):
        with Server("--tp", "2") as server:
            time.sleep(0.3)
            server.process.send_signal(signal.SIGINT)
            self.assertNotEqual(server.process.wait(STOP_S), None)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
