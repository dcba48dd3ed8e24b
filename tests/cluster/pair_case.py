"""What the tests of the pair share: two hosts, a cluster.toml made by `tandem setup`, the verbs."""
import pathlib
import sys
import time
import unittest

from two_hosts import TwoHosts

TANDEM, MODEL = sys.argv[1], sys.argv[2]
NOTICE_S = 12  # ten seconds to notice, two to look


class PairCase(unittest.TestCase):
    CABLE = "veth"

    @classmethod
    def setUpClass(cls):
        cls.hosts = TwoHosts(cls.CABLE)
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
        """Until the run has ended, at most NOTICE_S. Returns the seconds it took."""
        while time.monotonic() - since < NOTICE_S:
            if not self.hosts.pids(self.hosts.head, TANDEM, "serve"):
                return time.monotonic() - since
            time.sleep(0.2)
        self.fail(f"still running after {NOTICE_S} s:\n{self.tandem('status').stdout}\n"
                  f"{self.tandem('logs', '-n', '20').stdout}")

    def up_again(self, limit_s=30):
        """The next `tandem up` works within `limit_s`."""
        end = time.monotonic() + limit_s
        done = self.tandem("up")
        while done.returncode != 0 and time.monotonic() < end:
            time.sleep(1)
            done = self.tandem("up")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.tandem("status").returncode, 0)
        self.assertEqual([len(self.ranks(self.hosts.head)), len(self.ranks(self.hosts.worker))], [1, 1])
