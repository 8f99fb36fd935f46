"""What the rows work with: scratch directories, keys, trees of files, mounts, and the program under test."""
import json
import os
import shutil
import subprocess
import tempfile
import time

from .measure import Failed, program, quietly, say

PACKAGES = {"age": "age", "gocryptfs": "gocryptfs", "fusermount3": "fuse3", "getfattr": "attr", "time": "time", "ssh-add": "openssh-client",
            "gnome-keyring-daemon": "gnome-keyring", "dbus-run-session": "dbus"}
# Debian's own interpreter, which sees Debian's modules.
PYTHON = "/usr/bin/python3"
MODULES = {"secretstorage": "python3-secretstorage"}


def install_peers():
    """Installs the Debian packages that are missing; a peer that cannot be had makes its row 'not measured'."""
    missing = [package for name, package in PACKAGES.items() if shutil.which(name) is None]
    missing += [package for name, package in MODULES.items()
                if subprocess.run([PYTHON, "-c", f"import {name}"], stderr=subprocess.DEVNULL).returncode != 0]
    if not missing:
        return
    say("installing " + " ".join(missing))
    try:
        quietly([program("apt-get"), "update", "-qq"])
        quietly([program("apt-get"), "install", "-y", "-qq", *missing], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    except Failed as failure:
        say(f"warning: {failure}")


PRODUCTS = ("candado", "candado-agent", "candado-benchmark", "candado-agent-benchmark", "candado-foundation-benchmark",
            "candado-keychain-benchmark")
# A C program, which no package manager builds.
LIBRARY_BENCHMARK = "candado-library-benchmark"


def build(repository):
    """Builds the release programs; returns their directory."""
    options = ["-c", "release", "-Xswiftc", "-static-stdlib"]
    for product in PRODUCTS:
        say(f"building {product}")
        done = subprocess.run([program("swift"), "build", *options, "--product", product], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Failed(f"swift build --product {product} failed:\n" + done.stdout.decode(errors="replace")[-3000:])
    path = quietly([program("swift"), "build", *options, "--show-bin-path"], cwd=repository).decode().strip()
    say("building libcandado")
    library = quietly([os.path.join(repository, "scripts", "build-c-library")], cwd=repository).decode().strip()
    library = os.path.join(repository, library)
    source = os.path.join(repository, "Benchmarks", "CLibrary", "library.c")
    quietly([program("clang"), "-O2", "-Wall", "-I", library, source, "-L", library, "-lcandado", "-Wl,-rpath," + library,
             "-o", os.path.join(path, "candado-library-benchmark")])
    return path


class Workshop:
    """Scratch space on tmpfs and on ext4, removed at the end; the keybag; the commands."""

    def __init__(self, programs, memory, disk):
        (self.candado, _, self.benchmark, self.agent_benchmark, self.foundation_benchmark, self.keychain_benchmark) = (
            os.path.join(programs, name) for name in PRODUCTS)
        self.library_benchmark = os.path.join(programs, LIBRARY_BENCHMARK)
        self.ssh = None
        self.memory = tempfile.mkdtemp(prefix="candado-benchmark-", dir=memory)
        self.disk = tempfile.mkdtemp(prefix="candado-benchmark-", dir=disk)
        self.mounts = []
        self.others = []
        self.passcode = os.path.join(self.memory, "passcode")
        with open(os.open(self.passcode, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("correct horse battery staple")
        self.identity = os.path.join(self.memory, "age-identity")
        self.home = self.new_home("home", cost="10")

    def clear(self):
        """Unmounts and removes what a row has made; the keybag, the passcode and the age identity stay."""
        for process, mountpoint in self.mounts:
            subprocess.run([program("fusermount3"), "-u", mountpoint], check=False)
            process.wait(20)
        self.mounts = []
        for home in [self.home, *self.others]:
            subprocess.run([self.candado, "agent", "--stop", "--home", home, "--quiet"], check=False)
        self.others = []
        if self.ssh:
            self.ssh.terminate()
            self.ssh.wait(20)
            self.ssh = None
        kept = (self.passcode, self.home, self.identity)
        for place in (self.memory, self.disk):
            remove(*(path for path in (os.path.join(place, name) for name in os.listdir(place)) if path not in kept))()

    def close(self):
        self.clear()
        shutil.rmtree(self.memory, ignore_errors=True)
        shutil.rmtree(self.disk, ignore_errors=True)

    def new_home(self, name, cost=None, place=None):
        """A keybag of its own; `cost` is the scrypt exponent, or None for the calibrated default."""
        home = os.path.join(place or self.memory, name)
        command = [self.candado, "init", "--home", home, "--passcode-file", self.passcode, "--no-recovery-key"]
        quietly(command + (["--kdf-cost", cost] if cost else []))
        return home

    def ours(self, verb, *rest, home=None):
        """A candado command that unlocks for itself."""
        return [self.candado, verb, "--home", home or self.home, "--no-agent", "--passcode-file", self.passcode, *rest]

    def keyless(self, verb, *rest):
        """A candado command that needs no key."""
        return [self.candado, verb, "--home", self.home, *rest]

    def other_home(self, name, place):
        """A keybag of its own with an agent that is unlocked; both end with the row."""
        home = self.new_home(name, cost="10", place=place)
        self.others.append(home)
        quietly([self.candado, "unlock", "--home", home, "--passcode-file", self.passcode])
        return home

    def start_agent(self):
        """Starts and unlocks the agent of the home; it ends with the row."""
        quietly([self.candado, "unlock", "--home", self.home, "--passcode-file", self.passcode])

    def agent_process(self):
        """The number of the agent's process."""
        status = quietly([self.candado, "status", "--json", "--quiet", "--home", self.home])
        return json.loads(status)["agent"]["pid"]

    def ssh_agent(self):
        """Starts an ssh-agent with one key; returns its socket."""
        socket, key = os.path.join(self.memory, "ssh-agent"), os.path.join(self.memory, "ssh-key")
        self.ssh = subprocess.Popen([program("ssh-agent"), "-D", "-a", socket], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        quietly([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key])
        for _ in range(100):
            if os.path.exists(socket):
                break
            time.sleep(0.05)
        quietly([program("ssh-add"), "-q", key], env={**os.environ, "SSH_AUTH_SOCK": socket})
        return socket

    def random_file(self, name, size):
        """A file of random bytes on tmpfs."""
        path = os.path.join(self.memory, name)
        with open(path, "wb") as file:
            while size > 0:
                size -= file.write(os.urandom(min(size, 1 << 20)))
        return path

    def tree(self, root, files, size, per_directory=100):
        """A tree of files of equal size: directories of `per_directory` files."""
        for number in range(files):
            directory = os.path.join(root, f"directory-{number // per_directory:04}")
            if number % per_directory == 0:
                os.makedirs(directory)
            with open(os.path.join(directory, f"file-{number:06}.txt"), "wb") as file:
                file.write(os.urandom(size))
        return root

    def age_keys(self):
        """Makes an age identity; returns its file and the recipient."""
        if not os.path.exists(self.identity):
            quietly([program("age-keygen"), "-o", self.identity])
        return self.identity, quietly([program("age-keygen"), "-y", self.identity]).decode().strip()

    def gocryptfs(self):
        """Mounts a gocryptfs of its own whose encrypted side lies on tmpfs; returns the mount point."""
        cipher, mountpoint = os.path.join(self.memory, "gocryptfs"), os.path.join(self.disk, "gocryptfs")
        os.mkdir(cipher)
        os.mkdir(mountpoint)
        tool = program("gocryptfs")
        quietly([tool, "-init", "-q", "-scryptn", "10", "-passfile", self.passcode, cipher])
        process = subprocess.Popen([tool, "-fg", "-nosyslog", "-q", "-passfile", self.passcode, cipher, mountpoint], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.mounts.append((process, mountpoint))
        for _ in range(100):
            if os.path.ismount(mountpoint):
                return mountpoint
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise Failed("gocryptfs does not mount here")


def remove(*paths):
    """A step that removes files and trees, whether or not they are there."""
    def step():
        for path in paths:
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
    return step


def fresh_copy(source, target, settle=False):
    """A step that puts a new copy of a tree at `target`; `settle` makes it durable, so that its writing is not measured."""
    def step():
        remove(target)()
        quietly([program("cp"), "-r", source, target])
        if settle:
            quietly([program("sync"), "-f", target])
    return step
