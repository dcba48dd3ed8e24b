#!/usr/bin/env python3
"""The pair as its owner runs it, between two network namespaces: setup, doctor, up, status, smoke,
logs, down, and what happens when something breaks.

usage: pair_test.py TANDEM MODEL
"""
import json
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from two_hosts import TwoHosts

TANDEM, MODEL = sys.argv[1], sys.argv[2]
NOTICE_S = 12  # ten seconds to notice, two to look


class PairTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = TwoHosts()
        cls.addClassCleanup(cls.hosts.stop)
        cls.hosts.start()
        cls.file = cls.hosts.folder / "cluster.toml"
        options = [word for option in cls.hosts.ssh_options for word in ("--ssh-option=" + option,)]
        made = cls.hosts.on_head(TANDEM, "setup", "--output", str(cls.file), "--worker",
                                 f"root@{cls.hosts.WORKER}", "--model", MODEL, "--binary", TANDEM, *options)
        assert made.returncode == 0, made.stdout + made.stderr
        text = cls.file.read_text()
        cls.setup_text = text
        text = text.replace('"/var/lib/tandem"', f'"{cls.hosts.folder}/head"', 1)
        text = text.replace('"/var/lib/tandem"', f'"{cls.hosts.folder}/worker"', 1)
        text = text.replace("start_timeout_s = 1200", "start_timeout_s = 90")
        for name, value in (("max-context-tokens", 4096), ("kv-tokens", 8192), ("max-sequences", 2),
                            ("prefill-tokens", 512), ("threads", 1)):
            text += f'{name} = "{value}"\n'
        cls.file.write_text(text)

    def tandem(self, verb, *words):
        return self.hosts.on_head(TANDEM, verb, "--config", str(self.file), *words)

    def up(self):
        done = self.tandem("up")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def tearDown(self):
        self.hosts.link("up")
        self.tandem("down")

    def ranks(self, host):
        return self.hosts.pids(host, TANDEM, "rank")

    def wait_down(self, since):
        """Until the run has ended, at most NOTICE_S."""
        while time.monotonic() - since < NOTICE_S:
            if not self.hosts.pids(self.hosts.head, TANDEM, "serve"):
                return
            time.sleep(0.2)
        self.fail(f"still running after {NOTICE_S} s:\n{self.tandem('status').stdout}\n"
                  f"{self.tandem('logs', '-n', '20').stdout}")

    def test_setup_finds_cable_and_addresses(self):
        self.assertIn(f'address = "{self.hosts.HEAD}"', self.setup_text)
        self.assertIn(f'address = "{self.hosts.WORKER}"', self.setup_text)
        self.assertIn(f'interface = "{self.hosts.head_if}"', self.setup_text)
        self.assertIn(f'interface = "{self.hosts.worker_if}"', self.setup_text)

    def test_doctor_looks_at_both(self):
        done = self.tandem("doctor", "--json", "--all")
        report = json.loads(done.stdout)
        findings = {(f["id"], f["node"]): f for f in report["findings"]}
        self.assertEqual(findings[("ssh", "worker")]["level"], "pass")
        self.assertIn(("link", "pair"), findings)
        self.assertEqual(findings[("link", "pair")]["level"] == "fail", False, findings[("link", "pair")])
        self.assertTrue(any(node == "worker" and id != "ssh" for id, node in findings))

    def test_life(self):
        started = self.up()
        self.assertIn("ready at", started.stdout)
        self.assertEqual(len(self.ranks(self.hosts.head)), 1)
        self.assertEqual(len(self.ranks(self.hosts.worker)), 1)
        self.assertEqual(self.tandem("up").returncode, 3)
        status = self.tandem("status", "--json")
        self.assertEqual(status.returncode, 0, status.stdout)
        found = json.loads(status.stdout)
        self.assertEqual([rank["alive"] for rank in found["ranks"]], [True, True])
        self.assertTrue(all(node["answers"] for node in found["nodes"]))
        smoke = self.tandem("smoke", "--words", "300")
        self.assertEqual(smoke.returncode, 0, smoke.stdout)
        self.assertIn("ready:", self.tandem("logs").stdout)
        down = self.tandem("down")
        self.assertEqual(down.returncode, 0, down.stdout + down.stderr)
        self.assertEqual(self.ranks(self.hosts.head) + self.ranks(self.hosts.worker), [])
        self.assertEqual(self.tandem("status").returncode, 1)

    def test_killed_ranks_end_the_run_and_it_starts_again(self):
        for host in (self.hosts.worker, self.hosts.head):
            self.up()
            os.kill(self.ranks(host)[0], signal.SIGKILL)
            self.wait_down(time.monotonic())
            self.assertEqual(self.ranks(self.hosts.head) + self.ranks(self.hosts.worker), [])

    def test_stopped_worker_is_a_named_verdict(self):
        self.up()
        os.kill(self.ranks(self.hosts.worker)[0], signal.SIGSTOP)
        self.wait_down(time.monotonic())
        self.assertRegex(self.tandem("logs").stdout, "fault.*(rank 1|no answer|stuck)")

    def test_cut_link_is_a_named_verdict(self):
        self.up()
        self.hosts.link("down")
        self.wait_down(time.monotonic())
        self.assertRegex(self.tandem("logs").stdout, "fault.*(rank 1|no answer|stuck)")
        self.hosts.link("up")
        # The worker is found again within seconds of the link; the rest of the old run goes away.
        end = time.monotonic() + 30
        while self.tandem("up").returncode != 0 and time.monotonic() < end:
            time.sleep(1)
        self.assertEqual(self.tandem("status").returncode, 0)
        self.assertEqual(len(self.ranks(self.hosts.worker)), 1)

    def test_refusals_are_named_at_once(self):
        cases = ((f"root@{self.hosts.WORKER}", "root@10.97.31.77", "ssh:"),
                 (MODEL, "/nonexistent", "model:"),
                 (TANDEM, "/usr/bin/true-tandem", "version:"))
        good = self.file.read_text()
        try:
            for old, new, word in cases:
                self.file.write_text(good.replace(f'"{old}"', f'"{new}"'))
                done = self.tandem("up")
                self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
                self.assertIn(word, done.stderr)
        finally:
            self.file.write_text(good)

    def test_stale_lock_is_removed(self):
        lock = pathlib.Path(self.hosts.folder / "head" / "lock")
        lock.parent.mkdir(exist_ok=True)
        lock.write_text("999999 an-earlier-boot\n")
        self.assertIn("lock", self.up().stdout)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("pair_test: needs root (network namespaces); run the tests as root or with sudo")
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
