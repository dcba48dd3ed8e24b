#!/usr/bin/env python3
"""The exit codes and the output of `tandem model`, run as a user runs it.

usage: model_verb_test.py TANDEM_BINARY
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TANDEM = sys.argv.pop(1)


def tandem(*arguments):
    return subprocess.run([TANDEM, "model", *map(str, arguments)], capture_output=True, text=True, timeout=120)


class ModelVerb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temp.name)
        cls.model = cls.folder / "dspark"
        made = tandem("synth", cls.model, "--draft", "dspark", "--layers", 3, "--experts", 4, "--seed", 7)
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temp.cleanup()

    def test_inspect_and_check_a_healthy_checkpoint(self):
        inspected = tandem("inspect", self.model)
        self.assertEqual(inspected.returncode, 0, inspected.stderr)
        self.assertIn("DSpark, 3 stages", inspected.stdout)
        self.assertIn("no problems", inspected.stdout)
        checked = tandem("check", self.model, "--json")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        report = json.loads(checked.stdout)
        self.assertEqual(report["draft"], "dspark")
        self.assertEqual(report["problems"], [])
        self.assertEqual([r["ranks"] for r in report["ranks"]], [1, 2])

    def test_problems_make_exit_code_1(self):
        broken = self.folder / "broken"
        broken.mkdir()
        for file in self.model.iterdir():
            (broken / file.name).symlink_to(file)
        shard = sorted(broken.glob("*.safetensors"))[2]
        data = shard.read_bytes()
        shard.unlink()
        shard.write_bytes(data[:-1])
        for verb in ("inspect", "check"):
            result = tandem(verb, broken)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"truncated: {shard.name}", result.stdout)

    def test_no_checkpoint_makes_exit_code_1(self):
        result = tandem("inspect", self.folder / "nothing")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no such folder", result.stdout)

    def test_synth_refuses_a_folder_in_use(self):
        result = tandem("synth", self.model)
        self.assertEqual(result.returncode, 1)
        self.assertIn("not empty", result.stderr)

    def test_bad_arguments_are_refused(self):
        for arguments in (["inspect"], ["synth", "x", "--draft", "other"], ["synth", "x", "--layers", "0"], []):
            result = tandem(*arguments)
            self.assertNotIn(result.returncode, (0, 1), arguments)
            self.assertFalse(pathlib.Path("x").exists())


if __name__ == "__main__":
    unittest.main()
