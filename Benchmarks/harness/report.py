"""The results as Markdown and as a verdict."""
import os
import platform
import re

MEMORY_LIMIT = 64 << 20
OURS = ("candado write", "candado read", "protect -r", "audit", "reads", "overwrites", "overwrites, fsync", "--version",
        "class FILE", "class A", "class B", "class C", "class D", "A in batches", "B in batches", "C in batches",
        "D in batches", "1 client", "all of them", "through the agent", "embedded", "candado status", "wake-ups",
        "anonymous memory", "class NAMES", "class --stdin0 --json", "default passcode cost", "cost of this benchmark",
        ".completeFileProtection", "protected",
        "4 KiB reads in C", "length in C", "read of nothing in C",
        "mixed calls", "adds in memory", "SecItemAdd in memory", "keychain get")
# These are asked for all of a large file at once, and give it.
WHOLE_FILES = {"protected"}


MEMORY_TITLE = "| peak memory of any of these | "


def is_ours(name):
    return name in OURS or "loans of class A" in name or name.startswith(("add, ", "look up a secret"))


def figure(row, contestant):
    if row.unit == "per second":
        return f"{row.operations / contestant.seconds:,.0f}/s"
    if row.unit == "us":
        return f"{contestant.seconds * 1e6:.1f} us"
    if row.unit == "plain":
        return f"{contestant.seconds:.1f}"
    if row.unit == "ms":
        return f"{contestant.seconds * 1000:.2f} ms" if contestant.seconds < 0.1 else f"{contestant.seconds * 1000:.0f} ms"
    return f"{contestant.seconds:.3f} s"


def lines_of(row):
    """The table lines of a measured row, and whether every goal was met."""
    of = {contestant.name: contestant for contestant in row.contestants}
    ours = "<br>".join(f"{c.name}: {figure(row, c)}" for c in row.contestants if is_ours(c.name))
    peers = "<br>".join(f"{c.name}: {figure(row, c)}" for c in row.contestants if not is_ours(c.name))
    ratios, targets, verdicts, good = [], [], [], True
    for goal in row.goals:
        value = goal.value(of)
        ratios.append(f"{value:,.0f}{goal.unit}" if value >= 1000 else f"{value:.2f}{goal.unit}")
        targets.append(goal.text)
        verdicts.append("met" if goal.met(value) else "**missed**")
        good = good and goal.met(value)
    cells = [row.work, ours, peers, "<br>".join(ratios), "<br>".join(targets) or "none", "<br>".join(verdicts) or "-"]
    return "| " + " | ".join(cells) + " |", good


def memory_line(rows):
    """Peak memory of our programs over all rows."""
    peaks = {c.name: c.memory for row in rows for c in row.contestants
             if is_ours(c.name) and c.name not in WHOLE_FILES and c.runs}
    if not peaks:
        return None, True
    name = max(peaks, key=peaks.get)
    good = peaks[name] <= MEMORY_LIMIT
    detail = "<br>".join(f"{other}: {peak / 1048576:.1f} MiB" for other, peak in peaks.items())
    return f"{MEMORY_TITLE}{detail} | | {peaks[name] / 1048576:.1f} MiB ({name}) | at most 64 MiB | {'met' if good else '**missed**'} |", good


def updated(old, new):
    """The old page with the lines of the new one in their places; what is not there yet comes before the line on memory."""
    def parts(page):
        lines = page.split("\n")
        table = [number for number, line in enumerate(lines) if line.startswith("| ")]
        return lines[:table[0] + 2], [lines[number] for number in table[2:]], lines[table[-1] + 1:]

    head, rows, _ = parts(old)
    _, fresh, notes = parts(new)
    title = lambda line: line.split(" | ")[0]
    for line in fresh:
        if title(line) == title(MEMORY_TITLE):
            continue
        same = [number for number, row in enumerate(rows) if title(row) == title(line)]
        if same:
            rows[same[0]] = line
        else:
            rows.insert(len(rows) - 1, line)
    return "\n".join(head + rows + notes)


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            match = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
        return match.group(1).strip() if match else platform.machine()
    except OSError:
        return platform.machine()


def document(rows, failures, rounds, quick):
    """The whole page, and whether all was measured and met."""
    table, good = [], not failures
    for row in rows:
        line, met = lines_of(row)
        table.append(line)
        good = good and met
    line, met = memory_line(rows)
    if line:
        table.append(line)
        good = good and met
    table += [f"| {name} | - | - | - | - | **not measured**: {reason} |" for name, reason in failures]
    kernel = ".".join(platform.release().split("-")[0].split(".")[:2])
    page = f"""# Benchmarks

Written by `Benchmarks/run`; run it again to check. {'**A quick run with small sizes: the figures mean nothing.** ' if quick else ''}Each figure is the median of {rounds} runs, ours and the
peers' taking turns in a new order each round, after one round to warm up. Ratios count, not the figures: they belong to
this machine ({processor()}, {os.cpu_count()} processors, Linux {kernel}).

| work | ours | peers | reached | target | |
| --- | --- | --- | --- | --- | --- |
""" + "\n".join(table) + """

Notes

- The contestants of one row always come from one run. Rows may come from several (`--update`); the line on memory is from the last whole run.
- Every command that needs a key unlocks for itself (`--no-agent --passcode-file`), in a keybag whose passcode cost was set
  to scrypt N = 2^10, so that the passcode does not drown what is measured. With the calibrated default each such
  command pays what the last row but one says.
- "Warm" means that the same work was done before, and nothing was dropped from the page cache.
- gocryptfs 2.3 stores on tmpfs too and runs as `gocryptfs -fg -nosyslog`. `sync` is `sync -f`: the file system that is
  written to, and not those that others write to.
- The random rows are a program on the library `FileProtection` (`Benchmarks/RandomAccess`); time to unlock and open is not in
  the figures; 4 KiB aligned, one thread; `pread` and `pwrite` are the same program on a plain file.
- The agent's rows are a program on the client library (`Benchmarks/Agent`); an "empty packet there and back" goes between two
  threads that sleep until it comes, which the agent and its clients do not do at once. The agent's own passcode cost is the same.
- Foundation's rows are a program on `ProtectedFoundation` (`Benchmarks/Foundation`), with the agent's keys; Foundation's own
  calls are made by the same program. A protected file is durable, with its name, when the call returns; Foundation's atomic write
  syncs the file, and not its name.
- libcandado's row is a C program (`Benchmarks/CLibrary`) beside `candado-benchmark`, which does the same with the Swift library.
- Wake-ups are voluntary context switches of all threads of the agent, memory is `Anonymous` of its `smaps_rollup`, while nobody asks it.
- Peak memory is what `/usr/bin/time -f %M` says in the round that warms up.
- `getfattr -R` exits with 1 because directories have no record of their own here; it answers for every file all the same.
"""
    return page, good
