"""The rows of the table: what is done, by whom, and what ratio or figure has to be reached."""
import os
from dataclasses import dataclass
from typing import Callable, List

from .measure import Contestant, program, quietly
from .workshop import PYTHON, fresh_copy, remove

MIB = 1 << 20


@dataclass
class Goal:
    """`value` of the contestants (ours first, by name) has to be at most, or at least, `limit`."""

    text: str
    value: Callable
    limit: float
    at_least: bool = False
    unit: str = "x"

    def met(self, value):
        return value >= self.limit if self.at_least else value <= self.limit


def ratio(text, ours, peer, limit):
    return Goal(text, lambda of: of[ours].seconds / of[peer].seconds, limit)


@dataclass
class Row:
    work: str
    contestants: List[Contestant]
    goals: List[Goal]
    unit: str = "s"  # how the contestants' figures are shown: s, ms, or per second
    operations: int = 1


def write_row(shop, sizes):
    source = shop.random_file("plain", sizes["large"])
    _, recipient = shop.age_keys()
    target = {name: os.path.join(shop.memory, "out-" + name) for name in ("candado", "cp", "age")}
    size = f"{sizes['large'] // MIB:,} MiB"
    return Row(f"`candado write` of {size}, tmpfs", [
        Contestant("candado write", shop.ours("write", target["candado"]), stdin=source, before=remove(target["candado"])),
        Contestant("cp", [program("cp"), source, target["cp"]], before=remove(target["cp"])),
        Contestant("age -r", [program("age"), "-r", recipient, "-o", target["age"], source], before=remove(target["age"])),
    ], [ratio("at most 1.6 x cp", "candado write", "cp", 1.6), ratio("at most 0.6 x age -r", "candado write", "age -r", 0.6)])


def read_row(shop, sizes):
    source = shop.random_file("plain", sizes["large"])
    identity, recipient = shop.age_keys()
    protected, aged = os.path.join(shop.memory, "protected"), source + ".age"
    with open(source, "rb") as stdin:
        quietly(shop.ours("write", protected), stdin=stdin)
    quietly([program("age"), "-r", recipient, "-o", aged, source])
    return Row(f"`candado read` of {sizes['large'] // MIB:,} MiB to /dev/null, tmpfs", [
        Contestant("candado read", shop.ours("read", protected)),
        Contestant("age -d", [program("age"), "-d", "-i", identity, aged]),
        Contestant("cat", [program("cat"), source]),
    ], [ratio("at most 0.5 x age -d", "candado read", "age -d", 0.5)])


def protect_row(shop, sizes):
    source = shop.tree(os.path.join(shop.memory, "tree"), sizes["files"], 4096)
    ours, copy = os.path.join(shop.memory, "tree-ours"), os.path.join(shop.memory, "tree-copy")
    inside = os.path.join(shop.gocryptfs(), "tree")
    return Row(f"`protect -r` of {sizes['files']:,} files of 4 KiB, tmpfs", [
        Contestant("protect -r", shop.ours("protect", "-r", ours), before=fresh_copy(source, ours)),
        Contestant("cp -r", [program("cp"), "-r", source, copy], before=remove(copy)),
        Contestant("cp -r into gocryptfs", [program("cp"), "-r", source, inside], before=remove(inside)),
    ], [ratio("at most 3 x cp -r", "protect -r", "cp -r", 3), ratio("at most 0.3 x gocryptfs", "protect -r", "cp -r into gocryptfs", 0.3)])


def durable_row(shop, sizes):
    source = shop.tree(os.path.join(shop.disk, "tree"), sizes["files"], 4096)
    ours, copy = os.path.join(shop.disk, "tree-ours"), os.path.join(shop.disk, "tree-copy")

    def settled_removal():
        remove(copy)()
        quietly([program("sync"), "-f", shop.disk])

    script = 'cp -r "$1" "$2" && sync -f "$2"'
    return Row(f"`protect -r` of {sizes['files']:,} files of 4 KiB, ext4, durable at the end", [
        Contestant("protect -r", shop.ours("protect", "-r", ours), before=fresh_copy(source, ours, settle=True)),
        Contestant("cp -r; sync", [program("sh"), "-c", script, "sh", source, copy], before=settled_removal),
    ], [ratio("at most 4 x cp -r; sync", "protect -r", "cp -r; sync", 4)])


def audit_row(shop, sizes, place, name):
    tree = shop.tree(os.path.join(place, "audited"), sizes["audited"], 100, per_directory=500)
    quietly(shop.ours("protect", "-r", tree))
    return Row(f"`audit` of {sizes['audited']:,} protected files, warm, {name}", [
        Contestant("audit", shop.keyless("audit", tree)),
        Contestant("getfattr -R", [program("getfattr"), "-R", "-h", "--absolute-names", "-n", "user.candado", tree], good=(0, 1)),
        Contestant("find -type f", [program("find"), tree, "-type", "f"]),
    ], [ratio("at most 0.6 x getfattr -R", "audit", "getfattr -R", 0.6), ratio("at most 7 x find -type f", "audit", "find -type f", 7)])


def random_contestants(shop, path, plain, kinds, count):
    call = [shop.benchmark, "--home", shop.home, "--passcode-file", shop.passcode]
    return [Contestant(name, [*call, verb, plain if verb.startswith("plain") else path, str(count)], prints_seconds=True) for name, verb in kinds]


def prepare_random(shop, place, size):
    path, plain = os.path.join(place, "random"), os.path.join(place, "random-plain")
    call = [shop.benchmark, "--home", shop.home, "--passcode-file", shop.passcode]
    quietly([*call, "prepare", path, str(size)])
    quietly([*call, "plain-prepare", plain, str(size)])
    return path, plain


def random_memory_row(shop, sizes):
    path, plain = prepare_random(shop, shop.memory, sizes["large"])
    count = sizes["operations"]
    kinds = [("reads", "read"), ("overwrites", "overwrite"), ("pread", "plain-read"), ("pwrite", "plain-overwrite")]
    rate = lambda name: lambda of: count / of[name].seconds
    return Row(f"4 KiB random reads and overwrites, {count:,} each, in a {sizes['large'] // MIB:,} MiB file, tmpfs",
               random_contestants(shop, path, plain, kinds, count),
               [Goal("at least 150,000 reads a second", rate("reads"), 150_000, True, "/s"),
                Goal("at least 60,000 overwrites a second", rate("overwrites"), 60_000, True, "/s")],
               "per second", count)


def random_disk_row(shop, sizes):
    path, plain = prepare_random(shop, shop.disk, sizes["large"])
    count = sizes["operations"]
    kinds = [("overwrites, fsync", "overwrite"), ("pwrite, fsync", "plain-overwrite")]
    return Row(f"{count:,} 4 KiB random overwrites in a {sizes['large'] // MIB:,} MiB file, ext4, one fsync at the end",
               random_contestants(shop, path, plain, kinds, count),
               [ratio("at most 3 x plain pwrite", "overwrites, fsync", "pwrite, fsync", 3)])


def start_row(shop, sizes):
    path = shop.random_file("one", 5000)
    quietly(shop.ours("protect", path))
    limit = lambda text, name, milliseconds: Goal(text, lambda of: of[name].seconds * 1000, milliseconds, unit=" ms")
    return Row("start: `--version`; `class FILE`", [
        Contestant("--version", [shop.candado, "--version"], repeat=20),
        Contestant("class FILE", shop.keyless("class", path), repeat=20),
        Contestant("true", [program("true")], repeat=20),
        Contestant("getfattr FILE", [program("getfattr"), "--absolute-names", "-n", "user.candado", path], repeat=20),
    ], [limit("--version at most 4 ms", "--version", 4), limit("class FILE at most 5 ms", "class FILE", 5)], "ms")


def names_row(shop, sizes):
    tree = shop.tree(os.path.join(shop.memory, "named"), sizes["files"], 100)
    quietly(shop.ours("protect", "-r", tree))
    names = sorted(os.path.join(directory, file) for directory, _, files in os.walk(tree) for file in files if file.startswith("file-"))
    listing = os.path.join(shop.memory, "names")
    with open(listing, "w") as file:
        file.write("".join(name + "\0" for name in names))
    return Row(f"`class` of {len(names):,} names", [
        Contestant("class NAMES", shop.keyless("class", *names)),
        Contestant("class --stdin0 --json", shop.keyless("class", "--stdin0", "--json"), stdin=listing),
        Contestant("getfattr NAMES", [program("getfattr"), "-h", "--absolute-names", "-n", "user.candado", *names]),
    ], [ratio("NAMES at most 1.0 x getfattr", "class NAMES", "getfattr NAMES", 1.0),
        ratio("--stdin0 --json at most 1.0 x getfattr", "class --stdin0 --json", "getfattr NAMES", 1.0)], "ms")


def agent_call(shop, *words):
    return [shop.agent_benchmark, "--home", shop.home, "--passcode-file", shop.passcode, *map(str, words)]


def agent_row(shop, work, runs, goals, unit="s", operations=1, peers=()):
    """A row of the program that asks the agent; each run prints its seconds."""
    shop.start_agent()
    contestants = [Contestant(name, agent_call(shop, *words), prints_seconds=True) for name, words in runs]
    return Row(work, contestants + list(peers), goals, unit, operations)


def unwrap_row(shop, sizes):
    count = sizes["unwraps"]
    micro = lambda name: Goal(f"{name}: at most 60 us", lambda of: of[name].seconds * 1e6, 60, unit=" us")
    runs = [("class A", ("unwrap", "complete", count)), ("class B", ("unwrap", "complete-unless-open", count // 4)),
            ("class C", ("unwrap", "until-first-unlock", count)), ("class D", ("unwrap", "none", count)),
            ("empty packet there and back", ("echo", 0, count))]
    return agent_row(shop, "one unwrap through the socket, median", runs,
                     [micro("class A"), micro("class C"), micro("class D")], "us")


def batch_row(shop, sizes):
    count = sizes["batched"]
    rate = lambda name: Goal(f"{name}: at least 200,000 a second", lambda of: count / of[name].seconds, 200_000, True, "/s")
    runs = [("A in batches", ("batch", "complete", count)), ("B in batches", ("batch", "complete-unless-open", count)),
            ("C in batches", ("batch", "until-first-unlock", count)), ("D in batches", ("batch", "none", count))]
    return agent_row(shop, f"{count:,} unwraps through the socket in batches of 256", runs,
                     [rate("A in batches"), rate("C in batches"), rate("D in batches")], "per second", count)


def lock_row(shop, sizes):
    many, handles = sizes["clients"], 10 * sizes["clients"]
    limit = lambda name, ms: Goal(f"{name}: at most {ms} ms", lambda of: of[name].seconds * 1000, ms, unit=" ms")
    crowd = f"{many:,} clients, {handles:,} loans of class A"
    return agent_row(shop, "`lock`, as a client waits for it, median of 20",
                     [("1 client", ("lock", 1, 1)), (crowd, ("lock", many, handles))],
                     [limit("1 client", 1), limit(crowd, 5)], "ms")


def crowd_row(shop, sizes):
    count = 2 * sizes["clients"]
    return agent_row(shop, f"connect {count:,} clients, each with two loans", [("all of them", ("connect", count, 0))], [])


def agent_protect_row(shop, sizes):
    source = shop.tree(os.path.join(shop.memory, "tree"), sizes["files"], 4096)
    by_agent, embedded = os.path.join(shop.memory, "tree-agent"), os.path.join(shop.memory, "tree-embedded")
    shop.start_agent()
    return Row(f"`protect -r` of {sizes['files']:,} files of 4 KiB, tmpfs, through the agent", [
        Contestant("through the agent", shop.keyless("protect", "-r", by_agent), before=fresh_copy(source, by_agent)),
        Contestant("embedded", shop.ours("protect", "-r", embedded), before=fresh_copy(source, embedded)),
    ], [ratio("at most 1.15 x embedded", "through the agent", "embedded", 1.15)])


def foundation_call(shop, *words):
    return [shop.foundation_benchmark, "--home", shop.home, *map(str, words)]


def data_write_row(shop, sizes, place, name):
    """1 KiB at a time, over the same files, with the agent's keys."""
    count = sizes["small writes"]
    shop.start_agent()
    ours, plain = os.path.join(place, "data-ours"), os.path.join(place, "data-plain")
    os.mkdir(ours)
    os.mkdir(plain)
    return Row(f"{count:,} times `Data.write` of 1 KiB, {name}", [
        Contestant(".completeFileProtection", foundation_call(shop, "write", ours, count), prints_seconds=True),
        Contestant("Foundation, .atomic", foundation_call(shop, "plain-write", plain, count), prints_seconds=True),
    ], [ratio("at most 2 x Foundation's atomic write", ".completeFileProtection", "Foundation, .atomic", 2)])


def data_read_row(shop, sizes):
    shop.start_agent()
    size = sizes["large"]
    ours, plain = os.path.join(shop.memory, "data-ours"), os.path.join(shop.memory, "data-plain")
    quietly(foundation_call(shop, "prepare", ours, size))
    quietly(foundation_call(shop, "plain-prepare", plain, size))
    return Row(f"`Data(contentsOf:)` of {size // MIB:,} MiB, tmpfs", [
        Contestant("protected", foundation_call(shop, "read", ours, size), prints_seconds=True),
        Contestant("Foundation, a plain file", foundation_call(shop, "plain-read", plain, size), prints_seconds=True),
    ], [ratio("at most 1.5 x Foundation on a plain file", "protected", "Foundation, a plain file", 1.5)])


def library_row(shop, sizes):
    """The C library beside the Swift library: the same agent, the same class, the same file."""
    shop.start_agent()
    path = os.path.join(shop.memory, "library")
    swift = [shop.benchmark, "--home", shop.home, "--passcode-file", shop.passcode]
    quietly([*swift, "agent-prepare", path, str(sizes["large"])])
    count = sizes["operations"]
    calls = 10 * count
    contestant = lambda name, *words: Contestant(name, list(map(str, words)), prints_seconds=True)
    over = lambda ours, peer: lambda of: (of[ours].seconds - of[peer].seconds) / calls * 1e9
    rate = lambda of: of["4 KiB reads in Swift"].seconds / of["4 KiB reads in C"].seconds
    return Row(f"libcandado: {count:,} random reads, {calls:,} small calls", [
        contestant("4 KiB reads in C", shop.library_benchmark, shop.home, "read", path, count),
        contestant("length in C", shop.library_benchmark, shop.home, "length", path, calls),
        contestant("read of nothing in C", shop.library_benchmark, shop.home, "empty", path, calls),
        contestant("4 KiB reads in Swift", *swift, "agent-read", path, count),
        contestant("length in Swift", *swift, "agent-length", path, calls),
        contestant("read of nothing in Swift", *swift, "agent-empty", path, calls),
    ], [Goal("reads at least 0.8 x the Swift library", rate, 0.8, True),
        Goal("length: at most 50 ns above the Swift library", over("length in C", "length in Swift"), 50, unit=" ns"),
        Goal("read of nothing: at most 50 ns above", over("read of nothing in C", "read of nothing in Swift"), 50, unit=" ns")])


def status_row(shop, sizes):
    shop.start_agent()
    environment = shop.ssh_agent()
    return Row("`status` of an unlocked agent", [
        Contestant("candado status", shop.keyless("status"), repeat=20),
        Contestant("ssh-add -l", [program("env"), "SSH_AUTH_SOCK=" + environment, program("ssh-add"), "-l"], repeat=20, good=(0, 1)),
    ], [ratio("at most 2 x ssh-add -l", "candado status", "ssh-add -l", 2)], "ms")


def idle_row(shop, sizes):
    """Wake-ups and memory of an agent that nobody asks; a program prints them, so that they stand in the table."""
    shop.start_agent()
    seconds = sizes["idle"]
    probe = os.path.join(os.path.dirname(os.path.abspath(__file__)), "idle.py")
    run = lambda what: [program("python3"), probe, str(shop.agent_process()), what, str(seconds)]
    return Row(f"an idle agent, {seconds} s", [
        Contestant("wake-ups", run("wakeups"), prints_seconds=True),
        Contestant("anonymous memory", run("memory"), prints_seconds=True),
    ], [Goal("no wake-ups", lambda of: of["wake-ups"].seconds, 0, unit=""),
        Goal("at most 12 MiB of anonymous memory", lambda of: of["anonymous memory"].seconds, 12, unit=" MiB")], "plain")


def passcode_row(shop, sizes):
    """No target: what each command that needs a key pays without the agent."""
    costly = shop.new_home("home-default-cost")
    small, target = shop.random_file("small", 100), os.path.join(shop.memory, "small-protected")
    again = remove(target)
    return Row("`candado write` of 100 bytes: what unlocking costs each command", [
        Contestant("default passcode cost", shop.ours("write", target, home=costly), stdin=small, before=again),
        Contestant("cost of this benchmark", shop.ours("write", target), stdin=small, before=again),
    ], [], "ms")


def keychain_call(shop, *words, home=None):
    return [shop.keychain_benchmark, "--home", home or shop.home, *map(str, words)]


def keyring_call(shop, *words):
    """gnome-keyring with so many items, over a bus of its own, on the disk."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "secret_service.py")
    home = os.path.join(shop.disk, "keyrings")
    os.makedirs(home, exist_ok=True)
    return [PYTHON, script, home, *map(str, words)]


def seconds_of(*contestants):
    return [Contestant(name, command, prints_seconds=True) for name, command in contestants]


def keychain_add_row(shop, sizes):
    few, count = sizes["few items"], sizes["keychain calls"]
    home = shop.other_home("home-on-disk", shop.disk)
    quietly(keychain_call(shop, "fill", few, 0, home=home))
    ours = f"add, {few:,} present"
    return Row(f"keychain: add an item, ext4, {few:,} present, median of one", seconds_of(
        (ours, keychain_call(shop, "add", few, count, home=home)),
        ("gnome-keyring", keyring_call(shop, "add", few, max(count // 10, 5)))),
        [ratio("at most 0.1 x gnome-keyring", ours, "gnome-keyring", 0.1)], "us")


def keychain_many_row(shop, sizes):
    """Two homes, so that both counts are there in one run."""
    few, many, count = sizes["few items"], sizes["many items"], sizes["keychain calls"]
    homes = [shop.other_home(name, shop.memory) for name in ("home-few-items", "home-many-items")]
    for home, present in zip(homes, (few, many)):
        quietly(keychain_call(shop, "fill", present, 0, home=home))
    first, last, find = f"add, {few:,} present", f"add, {many:,} present", f"look up a secret, {many:,} present"
    return Row("keychain through the agent, tmpfs, median of one call", seconds_of(
        (first, keychain_call(shop, "add", few, count, home=homes[0])),
        (last, keychain_call(shop, "add", many, count, home=homes[1])),
        (find, keychain_call(shop, "find", many, 10 * count, home=homes[1])),
        (f"gnome-keyring, look up, {few:,} present", keyring_call(shop, "find", few, max(count // 10, 5)))),
        [ratio(f"add: at most 2 x with {few:,} present", last, first, 2),
         Goal("look-up at most 150 us", lambda of: of[find].seconds * 1e6, 150, unit=" us")], "us")


def keychain_mixed_row(shop, sizes):
    processes, calls = sizes["keychain processes"], sizes["mixed calls"]
    shop.start_agent()
    return Row(f"keychain: {processes} processes, {calls:,} mixed calls each, nothing lost", seconds_of(
        ("mixed calls", keychain_call(shop, "mixed", processes, calls))), [], "per second", processes * calls)


def keychain_memory_row(shop, sizes):
    count = sizes["items in memory"]
    rate = lambda name: Goal(f"{name}: at least 100,000 a second", lambda of: count / of[name].seconds, 100_000, True, "/s")
    return Row(f"keychain in memory: {count:,} adds", seconds_of(
        ("adds in memory", keychain_call(shop, "memory", 0, count)),
        ("SecItemAdd in memory", keychain_call(shop, "memory-sec-item", 0, count))),
        [rate("adds in memory"), rate("SecItemAdd in memory")], "per second", count)


def keychain_get_row(shop, sizes):
    shop.start_agent()
    secret = shop.random_file("secret", 32)
    names = ("--service", "benchmark-get", "--account", "a")
    with open(secret, "rb") as stdin:
        quietly([shop.candado, "keychain", "add", "--home", shop.home, *names], stdin=stdin)
    goal = Goal("at most 12 ms", lambda of: of["keychain get"].seconds * 1000, 12, unit=" ms")
    return Row("`candado keychain get`, start to exit", [
        Contestant("keychain get", [shop.candado, "keychain", "get", "--home", shop.home, *names], repeat=20),
        Contestant("true", [program("true")], repeat=20)], [goal], "ms")


ROWS = {
    "write": write_row,
    "read": read_row,
    "protect": protect_row,
    "durable": durable_row,
    "audit": lambda shop, sizes: audit_row(shop, sizes, shop.memory, "tmpfs"),
    "audit-ext4": lambda shop, sizes: audit_row(shop, sizes, shop.disk, "ext4"),
    "random": random_memory_row,
    "random-ext4": random_disk_row,
    "start": start_row,
    "names": names_row,
    "passcode": passcode_row,
    "unwrap": unwrap_row,
    "batch": batch_row,
    "lock": lock_row,
    "crowd": crowd_row,
    "agent-protect": agent_protect_row,
    "data-write": lambda shop, sizes: data_write_row(shop, sizes, shop.memory, "tmpfs"),
    "data-write-ext4": lambda shop, sizes: data_write_row(shop, sizes, shop.disk, "ext4"),
    "data-read": data_read_row,
    "library": library_row,
    "status": status_row,
    "idle": idle_row,
    "keychain-add": keychain_add_row,
    "keychain-many": keychain_many_row,
    "keychain-mixed": keychain_mixed_row,
    "keychain-memory": keychain_memory_row,
    "keychain-get": keychain_get_row,
}
