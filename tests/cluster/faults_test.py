#!/usr/bin/env python3
"""What breaks under a running pair, how fast it is noticed, and by which words. In every case a
client is in the middle of a stream, and must not hang.

usage: faults_test.py TANDEM MODEL [--table FILE]   (--table writes docs/FAULTS.md)
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pair_case import MODEL, NOTICE_S, PairCase

MODEL_NAME = pathlib.Path(MODEL).name
DOC = pathlib.Path(__file__).parents[2] / "docs" / "FAULTS.md"
VERDICT = "fault: .*(?:rank|stuck|lost|answer).*|Connection to .* closed by remote host"
BEGIN, END = "<!-- faults_test.py writes from here -->", "<!-- to here -->"
ROWS = {}  # fault -> (seconds or None, what happened)


class Stream:
    """A client of the head, reading a stream that lasts until the model's context is full."""

    def __init__(self, hosts):
        body = json.dumps({"model": MODEL_NAME, "prompt": "one two", "stream": True, "max_tokens": 3500,
                           "ignore_eos": True, "temperature": 0})
        self.path = hosts.folder / "stream.txt"
        with open(self.path, "wb") as out:
            self.process = hosts.popen_on_head(
                "curl", "-sN", "--max-time", "100", "http://127.0.0.1:8000/v1/completions",
                "-H", "content-type: application/json", "-d", body, stdout=out)
        end = time.monotonic() + 20
        while self.events() < 3 and time.monotonic() < end:
            time.sleep(0.05)

    def events(self):
        return self.path.read_bytes().count(b"data:")

    def ended(self, limit_s):
        try:
            self.process.wait(limit_s)
            return True
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False


class FaultCase(PairCase):
    def start(self):
        self.up()
        stream = Stream(self.hosts)
        self.assertGreaterEqual(stream.events(), 3, stream.path.read_text())
        self.assertIsNone(stream.process.poll())
        return stream

    def ends_by(self, fault, stream, since):
        """The run ends in time, the stream with it, and the log says why."""
        seconds = self.wait_down(since)
        self.assertTrue(stream.ended(5), "the client hangs")
        log = self.tandem("logs", "-n", "60").stdout
        found = re.search(VERDICT, log)
        ROWS[fault] = (seconds, found.group(0) if found else "the run ends; mpirun names the rank")
        return log

    def chat_works(self):
        done = self.tandem("smoke", "--words", "20")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class CutsAndKills(FaultCase):
    def test_killed_worker_rank(self):
        stream = self.start()
        os.kill(self.ranks(self.hosts.worker)[0], signal.SIGKILL)
        self.ends_by("worker's rank killed (-9)", stream, time.monotonic())
        self.up_again()

    def test_killed_head_rank(self):
        stream = self.start()
        os.kill(self.ranks(self.hosts.head)[0], signal.SIGKILL)
        self.ends_by("head's rank killed (-9)", stream, time.monotonic())

    def test_stopped_rank(self):
        stream = self.start()
        os.kill(self.ranks(self.hosts.worker)[0], signal.SIGSTOP)
        log = self.ends_by("worker's rank stopped (SIGSTOP)", stream, time.monotonic())
        self.assertRegex(log, VERDICT)

    def test_cut_link(self):
        stream = self.start()
        self.hosts.link("down")
        log = self.ends_by("link cut (carrier lost), then restored", stream, time.monotonic())
        self.assertRegex(log, VERDICT)
        self.hosts.link("up")
        self.up_again()

    def test_ssh_lost_after_start(self):
        stream = self.start()
        self.hosts.sshd.kill()
        self.hosts.sshd.wait()
        for pid in self.hosts.named(self.hosts.worker, "sshd"):
            os.kill(pid, signal.SIGKILL)
        since = time.monotonic()
        try:
            self.ends_by("ssh session lost after start", stream, since)
        finally:
            self.hosts.run_sshd()
        self.up_again()

    def test_head_reboots(self):
        stream = self.start()
        lock = self.hosts.folder / "head" / "lock"
        left_over = lock.read_text().split()[0] + " an-earlier-boot\n"
        self.hosts.kill_host(self.hosts.head)
        since = time.monotonic()
        lock.write_text(left_over)
        stream.process.wait()
        while self.ranks(self.hosts.worker) and time.monotonic() - since < NOTICE_S:
            time.sleep(0.1)
        seconds = time.monotonic() - since
        self.assertEqual(self.ranks(self.hosts.worker), [], "the worker's rank outlives its head")
        self.assertEqual(self.tandem("status").returncode, 1)
        self.up_again()
        ROWS["head reboots"] = (seconds, "the worker's rank ends; the next up removes the stale lock")

    def test_disk_full(self):
        folder = self.hosts.folder / "head"
        folder.mkdir(exist_ok=True)
        self.hosts.run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder))
        fill = folder / "fill"
        try:
            stream = self.start()
            self.fill(fill)
            before = stream.events()
            time.sleep(1)
            self.assertTrue(stream.events() > before or stream.process.poll() == 0, "the stream has stopped")
            self.chat_works()
            self.assertEqual(self.tandem("down").returncode, 0)
            fill.unlink()
            self.fill(fill)
            since = time.monotonic()
            done = self.tandem("up")
            seconds = time.monotonic() - since
            self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
            self.assertIn("full", done.stderr)
            ROWS["disk full under the state folder"] = (
                seconds, "serving goes on without log lines; the next `up` refuses: is the disk full?")
        finally:
            self.tandem("down")
            self.hosts.run("umount", "-l", str(folder))

    def fill(self, path):
        with open(path, "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass


class BadCable(FaultCase):
    CABLE = "tap"

    def tearDown(self):
        self.hosts.cable.delay_s, self.hosts.cable.loss = 0.0, 0.0
        super().tearDown()

    def test_delay_and_loss_are_survived(self):
        stream = self.start()
        cable = self.hosts.cable
        cable.delay_s, cable.loss = 0.005, 0.01
        before = stream.events()
        time.sleep(4)
        self.assertGreater(stream.events(), before, "the stream has stopped")
        self.assertGreater(cable.lost, 0)
        self.assertEqual(self.tandem("status").returncode, 0)
        ROWS["1 % of the packets lost, 5 ms delay"] = (None, "slower; no verdict, the stream goes on")

    def test_black_hole(self):
        stream = self.start()
        self.hosts.cable.loss = 1.0
        log = self.ends_by("every packet lost, carrier still up", stream, time.monotonic())
        self.assertRegex(log, VERDICT)


def table():
    lines = ["| fault | noticed within | what happens |", "|---|---|---|"]
    for fault, (seconds, words) in sorted(ROWS.items()):
        lines.append(f"| {fault} | {'-' if seconds is None else f'{seconds:.1f} s'} | {words.replace('|', '/')} |")
    return "\n".join(lines)


class Document(unittest.TestCase):
    """Last: the table names the faults that were tried, no more and no fewer."""

    def test_table_is_complete(self):
        named = set(re.findall(r"^\| ([^|]+) \| (?:-|[0-9.]+ s) \|", DOC.read_text(), re.M))
        self.assertEqual(named, set(ROWS), "write docs/FAULTS.md again: faults_test.py TANDEM MODEL --table FILE")


def write_table(path):
    text = pathlib.Path(path).read_text()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    pathlib.Path(path).write_text(f"{head}{BEGIN}\n{table()}\n{END}{tail}")


def main():
    if os.geteuid() != 0:
        sys.exit("faults_test: needs root (network namespaces); run the tests as root or with sudo")
    words = sys.argv[3:]
    target = words[words.index("--table") + 1] if "--table" in words else ""
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    named = [word for word in words if word.startswith("test_")]
    cases = [CutsAndKills, BadCable] + ([] if target or named else [Document])
    suite = unittest.TestSuite(test for case in cases for test in load(case)
                               if not named or test.id().split(".")[-1] in named)
    good = unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()
    print(table())
    if target and good:
        write_table(target)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
