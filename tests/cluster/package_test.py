#!/usr/bin/env python3
"""The .deb: what is in it, what it needs, and that its program runs once it is unpacked.

usage: package_test.py BUILD_FOLDER
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = sys.argv[1]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}:\n{done.stdout}{done.stderr}")
    return done.stdout


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tandem_deb_")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        run("cpack", "--config", f"{BUILD}/CPackConfig.cmake", "-B", str(cls.folder))
        cls.deb = str(next(cls.folder.glob("*.deb")))
        cls.root = cls.folder / "root"
        run("dpkg-deb", "-x", cls.deb, str(cls.root))

    def field(self, name):
        return run("dpkg-deb", "-f", self.deb, name).strip()

    def test_names_what_it_needs(self):
        self.assertEqual(self.field("Architecture"), run("dpkg", "--print-architecture").strip())
        needs = self.field("Depends")
        for name in ("openmpi-bin", "openssh-client", "iproute2", "libc6", "libsqlite3-0"):
            self.assertIn(name, needs)

    def test_program_runs(self):
        program = self.root / "usr/bin/tandem"
        self.assertIn("doctor", run(str(program), "--help"))

    def test_unit_starts_what_is_installed(self):
        unit = (self.root / "usr/lib/systemd/system/tandem.service").read_text()
        for line in unit.splitlines():
            if line.startswith(("ExecStart=", "ExecStop=")):
                program = line.split("=", 1)[1].split()[0]
                self.assertTrue((self.root / program.lstrip("/")).exists(), line)
        self.assertIn("SuccessExitStatus=3", unit)

    def test_install_script_starts_nothing(self):
        run("dpkg-deb", "-e", self.deb, str(self.folder / "control"))
        script = self.folder / "control" / "postinst"
        run("sh", "-n", str(script))
        self.assertNotIn("enable", script.read_text().replace("is enabled by its owner", ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
