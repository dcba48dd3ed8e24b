#!/usr/bin/env python3
"""The pair as its owner runs it, between two network namespaces: setup, doctor, up, status, smoke,
logs, down, and what is refused. Faults are in faults_test.py.

usage: pair_test.py TANDEM MODEL
"""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pair_case import MODEL, TANDEM, PairCase


class PairTest(PairCase):
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
