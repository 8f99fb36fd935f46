#!/usr/bin/env python3
"""Writes examples of the agent's messages, made from docs/formats/agent-protocol.md alone.

usage: agent_messages.py DIRECTORY     writes one packet a file; the names say what they are
       agent_messages.py --list        prints name and bytes in hexadecimal
"""
import os
import struct
import sys

KEYBAG = bytes(range(1, 17))


def head(kind, number, body):
    return struct.pack("<IHBBII", 16 + len(body), 1, kind, 0, number, 0) + body


def flag(value):
    return b"\1" if value else b"\0"


def text(value):
    data = value.encode()
    return struct.pack("<H", len(data)) + data


def listed(elements):
    return struct.pack("<H", len(elements)) + b"".join(elements)


def seconds(value):
    return struct.pack("<d", value)


def record(protection_class, flags, generation, rest):
    data = b"1" + bytes([0x40 + protection_class, flags, generation]) + KEYBAG + rest
    return bytes([len(data)]) + data


def loan(slot, serial):
    return struct.pack("<IQ", slot, serial)


def error(code, value, reason, message):
    return bytes([code]) + value + bytes([reason]) + text(message)


SYMMETRIC = record(1, 1, 3, bytes(range(40)))
ASYMMETRIC = record(2, 0, 255, b"\7" * 32 + b"\x08" * 40 + b"\t" * 32)
LOANS = [loan(0, 1), loan(0xFFFFFFFF, (1 << 56) - 1)]
MEMORY = struct.pack("<Q", 9) + flag(True) + flag(True) + listed([struct.pack("<H", pages) for pages in (1, 4, 64)])
STATUS = (struct.pack("<I", 77) + text("0.1.0") + KEYBAG + b"\2" + struct.pack("<q", -1) + flag(True) + b"\3" + flag(True) + seconds(2.5)
          + flag(True) + flag(False) + flag(True) + b"\2" + listed([b"\3", b"\4"]) + flag(False) + listed([text("process 5")])
          + listed([struct.pack("<I", 8) + text("/bin/b") + struct.pack("<I", 2)])
          + listed([struct.pack("<I", 1) + text("/bin/a") + struct.pack("<I", 3)]) + struct.pack("<I", 4)
          + listed([text("/old/c") + text("/new/c")]))

MESSAGES = {
    "request-hello": head(0x01, 1, struct.pack("<HH", 1, 1) + flag(True)),
    "request-make-file-keys": head(0x02, 2, b"\1" + b"\1" + struct.pack("<H", 256) + listed(LOANS)),
    "request-unwrap": head(0x03, 3, listed([SYMMETRIC, ASYMMETRIC]) + listed(LOANS)),
    "request-rewrap": head(0x04, 4, ASYMMETRIC + b"\1" + b"\1" + listed(LOANS)),
    "request-release": head(0x05, 5, listed(LOANS)),
    "request-unlock": head(0x06, 6, struct.pack("<H", 13) + b"correct horse"),
    "request-lock": head(0x07, 7, b"\3"),
    "request-status": head(0x08, 8, b""),
    "request-subscribe": head(0x09, 9, b""),
    "request-stop": head(0x0A, 10, b""),
    "request-reload": head(0x0B, 11, b""),
    "request-open-keychain": head(0x0C, 12, b""),
    "reply-welcome": head(0x81, 1, struct.pack("<HI", 1, 99) + KEYBAG),
    "reply-file-keys": head(0x82, 2, MEMORY + listed([SYMMETRIC + LOANS[0], ASYMMETRIC + LOANS[1]])),
    "reply-loans": head(0x83, 3, MEMORY + listed([flag(True) + LOANS[0], flag(False) + error(1, b"\1", 0, "locked")])),
    "reply-record": head(0x84, 4, SYMMETRIC),
    "reply-lock-incomplete": head(0x87, 7, b"\2" + listed([text("process 5")]) + listed([struct.pack("<I", 5) + text("/usr/bin/e") + struct.pack("<I", 2)])),
    "reply-lock-grace": head(0x87, 7, b"\1" + seconds(10) + listed([])),
    "reply-status": head(0x88, 8, STATUS),
    "reply-done": head(0x8A, 10, b""),
    "reply-keychain": head(0x8C, 12, b""),
    "event-state": head(0xE0, 0, b"\0\1"),
    "event-will-lock": head(0xE0, 0, b"\1" + seconds(10) + flag(True) + b"\2"),
    "event-did-lock": head(0xE0, 0, b"\2" + flag(False)),
    "event-did-unlock": head(0xE0, 0, b"\3"),
    "failure-too-many-tries": head(0xFF, 6, error(3, seconds(300.5), 0, "wait")),
    "failure-damaged": head(0xFF, 3, error(8, b"\2", 0, "damaged")),
    "failure-foreign": head(0xFF, 3, error(9, KEYBAG, 0, "another's")),
    "failure-unsupported": head(0xFF, 3, error(11, b"", 2, "no")),
    "failure-system": head(0xFF, 3, error(21, struct.pack("<i", 28), 0, "full")),
}


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 64
    for name, packet in MESSAGES.items():
        if sys.argv[1] == "--list":
            print(name, packet.hex())
        else:
            with open(os.path.join(sys.argv[1], name), "wb") as file:
                file.write(packet)
    return 0


if __name__ == "__main__":
    sys.exit(main())
