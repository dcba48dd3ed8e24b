#!/usr/bin/env python3
"""tandem bench as a user types it: what it measures on a server whose figures are known, what is kept
when it is interrupted or out of time, and how wrong addresses and dying servers are named.

usage: bench_verb_test.py TANDEM
"""
import csv
import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from stream_server import TOKENS_PER_CHUNK, StreamServer

TANDEM = sys.argv[1]
SMALL = ["--context", "64", "--concurrency", "1", "--max-tokens", "32", "--requests", "5"]


def bench(*words, timeout=60):
    return subprocess.run([TANDEM, "bench", *words], capture_output=True, text=True, timeout=timeout)


class BenchVerb(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def reports(self, name="r"):
        return ["--json", str(self.path / f"{name}.json"), "--csv", str(self.path / f"{name}.csv"),
                "--html", str(self.path / f"{name}.html")]

    def read(self, name="r"):
        return json.loads((self.path / f"{name}.json").read_text())

    def test_measures_what_the_server_does(self):
        with StreamServer(chunk_s=0.01) as server:
            done = bench(server.url + "/v1", "--context", "64,512", "--concurrency", "1,3", "--content",
                         "prose,code", "--max-tokens", "32", "--requests", "4", "--warm", *self.reports())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            cold = [p for p in server.prompts if server.prompts.count(p) == 1]
        report = self.read()
        self.assertEqual((report["end"], report["schema_version"], report["model"]), ("complete", 2, "scripted"))
        self.assertEqual(len(report["cells"]), 16)
        self.assertEqual(report["tokens_per_word"]["prose"]["counted_by"], "/tokenize")
        # Two contexts and contents, 1 and 3 streams, 4 requests and one warm-up each.
        self.assertEqual(len(cold), 2 * 2 * (4 * (1 + 3) + 2))
        for cell in report["cells"]:
            self.assertAlmostEqual(cell["prompt_tokens"], cell["context_tokens"], delta=3, msg=cell["name"])
            self.assertEqual(cell["cached_tokens"], cell["prompt_tokens"] if cell["warm"] else 0, cell["name"])
            self.assertEqual(cell["decode_tokens_per_s"]["n"], 4 * cell["concurrency"])
            # The server sleeps 10 ms or more after 4 tokens; a count of chunks would give a quarter of the rate.
            self.assertLess(cell["decode_tokens_per_s"]["median"], 4 / 0.01 * 1.2)
            of_one_gap = cell["decode_tokens_per_s"]["median"] * cell["gap_median_s"]["median"]
            self.assertGreater(of_one_gap, TOKENS_PER_CHUNK * 0.5, cell["name"])
            self.assertGreaterEqual(cell["tokens_per_arrival"], TOKENS_PER_CHUNK)
            self.assertLess(cell["tokens_per_arrival"], 2 * TOKENS_PER_CHUNK)
            self.assertGreaterEqual(cell["gap_median_s"]["median"], 0.009)
            self.assertGreaterEqual(cell["gap_p99_s"]["median"], cell["gap_median_s"]["median"])
            self.assertAlmostEqual(cell["accepted"] / cell["drafted"], 0.75, places=6)
        rows = list(csv.DictReader((self.path / "r.csv").read_text().splitlines()))
        self.assertEqual([row["end"] for row in rows], ["complete"] * 16)
        page = (self.path / "r.html").read_text()
        self.assertEqual(page.count("<svg"), 4)
        self.assertNotIn("http://www.w3.org/1999/xlink", page)
        self.assertNotIn("<script", page)
        self.assertIn("cell 16 of 16", done.stderr)
        self.assertNotIn("\r", done.stderr)  # no bar where there is no terminal

    def test_counts_by_usage_and_says_what_is_missing(self):
        with StreamServer("no_tokenize") as server:
            done = bench(server.url, *SMALL, *self.reports())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.read()["tokens_per_word"]["prose"]["counted_by"], "usage")
        self.assertAlmostEqual(self.read()["cells"][0]["prompt_tokens"], 64, delta=3)
        with StreamServer("no_metrics") as server:
            done = bench(server.url, *SMALL, *self.reports())
            self.assertIn("no metric", done.stdout)
            self.assertNotIn("drafted", self.read()["cells"][0])
        with StreamServer("no_usage") as server:
            done = bench(server.url, *SMALL)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no usage with completion_tokens", done.stdout)

    def test_mixed_cell_finds_the_share_that_streams_keep(self):
        # A prompt of 2000 tokens is read in 0.6 s, during which streams send half as often.
        with StreamServer(chunk_s=0.01, prefill_s_per_token=0.0003) as server:
            done = bench(server.url, "--context", "64", "--concurrency", "2", "--max-tokens", "16", "--requests",
                         "3", "--mixed", "2000", "--mixed-quiet-seconds", "0.5", *self.reports())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        mixed = self.read()["cells"][1]["mixed"]
        self.assertEqual(len(mixed["rounds"]), 3)
        self.assertEqual(mixed["kept_share"]["n"], 6)
        self.assertGreater(mixed["kept_share"]["median"], 0.25)
        self.assertLess(mixed["kept_share"]["median"], 0.8)
        self.assertAlmostEqual(mixed["rounds"][0]["long_prompt_tokens"], 2000, delta=20)
        self.assertGreaterEqual(mixed["rounds"][0]["long_ttft_s"], 0.55)
        self.assertIn("streams keep", done.stdout)

    def interrupt(self, server, *words, after=None):
        child = subprocess.Popen([TANDEM, "bench", server.url, *words], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 30
        while not after() and time.monotonic() < end:
            time.sleep(0.02)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
        return child.returncode, out, err, time.monotonic() - began

    def test_interrupt_keeps_finished_cells_and_requests(self):
        with StreamServer(chunk_s=0.01) as server:
            code, out, err, _ = self.interrupt(
                server, "--context", "64", "--concurrency", "1,2", "--max-tokens", "32", "--requests", "200",
                *self.reports(), after=lambda: len(server.prompts) > 12)
        self.assertEqual(code, 130, out + err)
        self.assertIn("interrupted; 1 of 2 cells are kept", err)
        report = self.read()
        self.assertEqual((report["end"], report["cells_planned"]), ("interrupted", 2))
        self.assertEqual(report["cells"][0]["end"], "stopped")
        self.assertGreaterEqual(report["cells"][0]["decode_tokens_per_s"]["n"], 8)
        self.assertIn(",stopped\n", (self.path / "r.csv").read_text())
        self.assertIn("interrupted (1 of 2 cells)", (self.path / "r.html").read_text())

    def test_draws_a_bar_on_a_terminal(self):
        master, terminal = pty.openpty()
        with StreamServer() as server:
            child = subprocess.Popen([TANDEM, "bench", server.url, *SMALL, "--max-seconds", "30"],
                                     stdout=subprocess.DEVNULL, stderr=terminal)
            os.close(terminal)
            seen = b""
            while chunk := self.read_terminal(master):
                seen += chunk
            self.assertEqual(child.wait(timeout=30), 0)
        os.close(master)
        self.assertIn(b"\r", seen)
        self.assertRegex(seen.decode(), r"\[#+\.+\] 3 of 5 requests, \d+ of at most 30 s, cell 1 of 1: prose c=1")
        self.assertIn(b"[########################] 5 of 5 requests", seen)

    @staticmethod
    def read_terminal(master):
        try:
            return os.read(master, 4096)
        except OSError:  # the other side is closed
            return b""

    def test_interrupt_does_not_wait_for_a_silent_server(self):
        with StreamServer("silent") as server:
            code, out, err, seconds = self.interrupt(server, *SMALL, after=lambda: server.prompts)
        self.assertEqual(code, 130, out + err)
        self.assertLess(seconds, 10)

    def test_time_limit_ends_the_run_and_keeps_it(self):
        with StreamServer(chunk_s=0.01) as server:
            done = bench(server.url, "--context", "64", "--concurrency", "1,2", "--max-tokens", "32",
                         "--requests", "500", "--max-seconds", "1.5", *self.reports())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.read()["end"], "time limit")
        self.assertGreaterEqual(self.read()["cells"][0]["ttft_s"]["n"], 3)
        self.assertIn("--max-seconds is over; 1 of 2 cells are kept", done.stderr)

    def test_wrong_addresses_are_named(self):
        with socket.socket() as taken:  # bound but not listening: nobody answers here
            taken.bind(("127.0.0.1", 0))
            dead = bench(f"http://127.0.0.1:{taken.getsockname()[1]}", *SMALL)
        self.assertEqual(dead.returncode, 3, dead.stderr)
        self.assertIn("connecting failed: Connection refused", dead.stderr)
        for words, needle in (((), "is not a URL"), (("localhost:8000",), "is not a URL"),
                              (("ftp://x",), "expected http:// or https://"),
                              (("http://x", "--context", "12Q"), "--context '12Q'; expected tokens like"),
                              (("http://x", "--content", "poems"), "--content 'poems'"),
                              (("http://x", "--protocol", "mine"), "--list-protocols names them")):
            done = bench(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(needle, done.stderr)
        with StreamServer("not_found") as server:
            done = bench(server.url, *SMALL)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("GET /v1/models: status 404", done.stderr)

    def test_failing_requests_are_named(self):
        with StreamServer("overloaded") as server:
            done = bench(server.url, *SMALL, *self.reports())
        self.assertEqual(done.returncode, 1)
        self.assertIn('status 503: {"error": {"message": "busy"}}', done.stdout)
        self.assertEqual(len(self.read()["cells"][0]["errors"]), 6)

    def test_a_server_that_dies_ends_the_run(self):
        with StreamServer(die_after=9) as server:
            done = bench(server.url, "--context", "64", "--concurrency", "1,2,4", "--max-tokens", "32",
                         "--requests", "5", *self.reports())
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("stopped answering in cell 2 of 3; what was finished is kept", done.stderr)
        report = self.read()
        self.assertEqual(report["end"], "server gone")
        self.assertEqual([cell["end"] for cell in report["cells"]], ["complete", "server gone"])
        self.assertEqual(report["cells"][0]["ttft_s"]["n"], 5)
        self.assertTrue(report["cells"][1]["errors"])

    def test_compare_tells_speed_from_noise(self):
        for name, chunk_s in (("fast", 0.004), ("slow", 0.02)):
            with StreamServer(chunk_s=chunk_s) as server:
                done = bench(server.url, *SMALL[:-1], "8", *self.reports(name))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        fast, slow = str(self.path / "fast.json"), str(self.path / "slow.json")
        worse = bench("compare", fast, slow, "--strict")
        self.assertEqual(worse.returncode, 1, worse.stdout + worse.stderr)
        self.assertRegex(worse.stdout, r"decode tokens/s .* worse")
        better = bench("compare", slow, fast)
        self.assertEqual(better.returncode, 0)
        self.assertRegex(better.stdout, r"decode tokens/s .* better")
        same = bench("compare", fast, fast, "--strict")
        self.assertEqual(same.returncode, 0)
        self.assertIn("verdict: no difference beyond noise", same.stdout)
        missing = bench("compare", fast, str(self.path / "none.json"))
        self.assertEqual(missing.returncode, 2)
        self.assertIn("cannot read", missing.stderr)

    def test_published_protocols_are_listed_with_their_differences(self):
        done = bench("--list-protocols")
        self.assertEqual(done.returncode, 0)
        self.assertIn("recipe-128", done.stdout)
        self.assertIn("differs:", done.stdout)
        with StreamServer(chunk_s=0.001) as server:
            done = bench(server.url, "--protocol", "content", "--requests", "1", *self.reports())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"prose c=1 256 tokens:  decode [0-9.e+]+ beside 40.8 \([0-9.]+x\)")
        self.assertEqual(self.read()["max_tokens"], 400)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
