"""Runs commands, times them, and takes turns between the contestants of a row."""
import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional


class Failed(Exception):
    """A command of a row failed; the row is reported as not measured."""


@dataclass
class Run:
    seconds: float  # elapsed
    processor: float  # user and system seconds, children included
    value: Optional[float] = None  # what the program measured of itself, when it prints seconds


@dataclass
class Contestant:
    """One way of doing the work of a row. `command` is run `repeat` times within one timing."""

    name: str
    command: List[str]
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    stdin: str = os.devnull
    stdout: str = os.devnull
    repeat: int = 1
    prints_seconds: bool = False
    good: tuple = (0,)  # exit statuses that count as done
    runs: List[Run] = field(default_factory=list)
    memory: int = 0  # peak resident bytes, of the first round

    @property
    def seconds(self):
        return statistics.median(run.seconds if run.value is None else run.value for run in self.runs) / self.repeat

    @property
    def processor(self):
        return statistics.median(run.processor for run in self.runs) / self.repeat


def spawn(command, stdin, stdout, stderr):
    """Starts a command with its three streams and waits for it; returns exit status and resource use."""
    actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1), (os.POSIX_SPAWN_DUP2, stderr, 2)]
    process = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(process, 0)
    return os.waitstatus_to_exitcode(status), usage


def once(contestant, scratch, weigh=False):
    """One timed run of a contestant. Raises Failed with the command's own words when it fails.

    `weigh` runs it under time(1) to learn its peak memory: a process takes over the peak of the one that starts it, and
    this interpreter is too large for that.
    """
    weight = os.path.join(scratch, "memory")
    command = [program("time"), "-f", "%M", "-o", weight, *contestant.command] if weigh else contestant.command
    errors, output = os.path.join(scratch, "stderr"), os.path.join(scratch, "stdout")
    contestant.before()
    input_number = os.open(contestant.stdin, os.O_RDONLY)
    output_number = os.open(output if contestant.prints_seconds else contestant.stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    error_number = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        processor = 0.0
        start = time.monotonic()
        for _ in range(contestant.repeat):
            code, usage = spawn(command, input_number, output_number, error_number)
            processor += usage.ru_utime + usage.ru_stime
            if code not in contestant.good:
                break
        seconds = time.monotonic() - start
    finally:
        for number in (input_number, output_number, error_number):
            os.close(number)
    if code not in contestant.good:
        with open(errors, errors="replace") as text:
            raise Failed(f"{contestant.name}: exit {code}: {' '.join(text.read(400).split())}")
    if weigh:
        with open(weight) as text:
            contestant.memory = int(text.read().split()[-1]) * 1024
    value = None
    if contestant.prints_seconds:
        with open(output) as text:
            value = float(text.read().split()[0])
    contestant.after()
    return Run(seconds, processor, value)


def take_turns(contestants, rounds, scratch, progress):
    """Runs every contestant once a round, in a new order each round. Round 0 warms up and is dropped."""
    for number in range(rounds + 1):
        order = contestants[:]
        random.shuffle(order)
        for contestant in order:
            run = once(contestant, scratch, weigh=number == 0)
            if number > 0:
                contestant.runs.append(run)
        progress(f"round {number} of {rounds}")


def program(name):
    """The path of a program, as posix_spawn needs it."""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise Failed(f"{name} is not installed")


def quietly(command, **options):
    """Runs a command that is not measured; raises Failed with its words when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        words = " ".join(done.stderr.decode(errors="replace").split())[-400:]
        raise Failed(f"{os.path.basename(command[0])} {command[1] if len(command) > 1 else ''}: exit {done.returncode}: {words}")
    return done.stdout


def say(text):
    print(text, file=sys.stderr, flush=True)
