#!/usr/bin/env python3
"""Prints how often a process woke up in so many seconds, or its anonymous memory in MiB.

usage: idle.py PID wakeups|memory SECONDS
"""
import os
import sys
import time


def switches(process):
    total = 0
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/status") as file:
            total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


def main():
    process, what, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    time.sleep(1)  # what was asked before is over
    if what == "wakeups":
        before = switches(process)
        time.sleep(seconds)
        print(switches(process) - before)
    else:
        with open(f"/proc/{process}/smaps_rollup") as file:
            print(sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:")) / 1024)


main()
