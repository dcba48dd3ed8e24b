"""Two machines out of one: two network namespaces with a veth pair (or a Cable that can be bad)
between them, each with its own address and state folder, sshd on the worker. Needs root. The file system is shared, so binary and model are too.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

from cable import Cable


class TwoHosts:
    HEAD, WORKER = "10.97.31.1", "10.97.31.2"

    def __init__(self, kind="veth"):
        self.kind, self.cable = kind, None
        self.tag = f"td{os.getpid()}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tandem_pair_"))
        self.head, self.worker = f"{self.tag}h", f"{self.tag}w"
        self.head_if, self.worker_if = f"{self.tag}a", f"{self.tag}b"
        self.sshd = None

    def run(self, *words, check=True, **options):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, **options)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done

    def start(self):
        for name in (self.head, self.worker):
            self.run("ip", "netns", "add", name)
        self.plug_in()
        for name, interface, address in ((self.head, self.head_if, self.HEAD),
                                         (self.worker, self.worker_if, self.WORKER)):
            self.run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", interface)
            self.run("ip", "-n", name, "link", "set", interface, "up")
            self.run("ip", "-n", name, "link", "set", "lo", "up")
        self.start_sshd()

    def plug_in(self):
        if self.kind == "veth":
            self.run("ip", "link", "add", self.head_if, "netns", self.head, "type", "veth", "peer", "name",
                     self.worker_if, "netns", self.worker)
            return
        self.cable = Cable([self.head_if, self.worker_if])
        self.run("ip", "link", "set", self.head_if, "netns", self.head)
        self.run("ip", "link", "set", self.worker_if, "netns", self.worker)

    def start_sshd(self):
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        for key in ("host_key", "user_key"):
            self.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key))
        shutil.copy(self.folder / "user_key.pub", self.folder / "authorized_keys")
        (self.folder / "sshd_config").write_text(
            f"ListenAddress {self.WORKER}\nHostKey {self.folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            f"PermitRootLogin yes\nPidFile none\n")
        (self.folder / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.folder}/user_key\n  StrictHostKeyChecking no\n"
            f"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n")
        self.run_sshd()

    def run_sshd(self):
        self.sshd = subprocess.Popen(["ip", "netns", "exec", self.worker, "/usr/sbin/sshd", "-D",
                                      "-E", str(self.folder / "sshd.log"), "-f", str(self.folder / "sshd_config")])

    @property
    def ssh_options(self):
        return ["-F", str(self.folder / "ssh_config")]

    def on_head(self, *words, **options):
        return self.run("ip", "netns", "exec", self.head, *words, check=False, **options)

    def popen_on_head(self, *words, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.head, *words], **options)

    def link(self, state):
        self.run("ip", "-n", self.worker, "link", "set", self.worker_if, state)

    def pids(self, host, program, verb):
        """Processes of a host that run `program verb ...`."""
        found = []
        for pid in self.run("ip", "netns", "pids", host).stdout.split():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if [word.decode() for word in words[:2]] == [program, verb]:
                found.append(int(pid))
        return found

    def named(self, host, name):
        """Processes of a host with this name."""
        found = []
        for pid in self.run("ip", "netns", "pids", host).stdout.split():
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip().startswith(name):
                    found.append(int(pid))
            except OSError:
                continue
        return found

    def kill_host(self, name):
        """Every process of a host at once, as a power cut does."""
        for pid in self.run("ip", "netns", "pids", name, check=False).stdout.split():
            try:
                os.kill(int(pid), 9)
            except OSError:
                pass

    def stop(self):
        for name in (self.head, self.worker):
            self.kill_host(name)
        if self.sshd is not None:
            self.sshd.wait()
        if self.cable is not None:
            self.cable.stop()
        for name in (self.head, self.worker):
            self.run("ip", "netns", "del", name, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
