#!/usr/bin/env python3
"""A small logind for the tests, or a stranger who acts like one. Needs nothing but Python: it speaks D-Bus itself.

usage: fake_logind.py BUS-SOCKET [--stranger]

It says "ready NAME" when it is connected (and, unless a stranger, owns org.freedesktop.login1), and then takes commands, one
a line:

    session ID USER [CLASS [STATE]]
                                there is a session of this user ("user", "active"); nothing is told of it
    new ID USER [CLASS [STATE]] the same, and SessionNew
    removed ID                  SessionRemoved
    user-removed USER           UserRemoved
    silent ID | refusing ID     questions about this session are not answered, or with an error
    hold | resume               no Inhibit and no question about a session is answered for the time being
    lock ID                     Lock
    hint ID true|false          PropertiesChanged with LockedHint
    sleep true|false            PrepareForSleep
    no-list true|false          ListSessions is answered with an error
    asleep true|false           Inhibit is answered with OperationInProgress
    release                     gives the name up
    forged-owner NAME           NameOwnerChanged, as if the bus had said that NAME is logind now
    to NAME COMMAND...          the same command, its signals sent to this connection alone
    sync                        says "synced" when the bus has passed on all that was sent before

and tells what it is asked, before it answers: "listed", "asked ID" (for its user),
"described ID" (all its properties), "inhibit WHAT WHO MODE", "inhibit-refused"; and
"inhibit-closed" when a descriptor that it handed out is closed. It ends when its input does.
"""

import os
import selectors
import socket
import struct
import sys

LOGIN = "org.freedesktop.login1"
MANAGER = "/org/freedesktop/login1"
SESSION = MANAGER + "/session/_3"
BUS = "org.freedesktop.DBus"
CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
ALIGNMENT = {"y": 1, "b": 4, "u": 4, "h": 4, "s": 4, "o": 4, "a": 4, "g": 1, "v": 1, "(": 8, "{": 8}
CLOSING = {"(": ")", "{": "}"}


def first(signature):
    """The first complete type of a signature, and the rest."""
    if signature[0] == "a":
        element, rest = first(signature[1:])
        return "a" + element, rest
    depth = 0
    for index, letter in enumerate(signature):
        depth += (letter in "({") - (letter in ")}")
        if depth == 0:
            return signature[:index + 1], signature[index + 1:]
    raise ValueError(signature)


def types(signature):
    while signature:
        one, signature = first(signature)
        yield one


class Writer:
    def __init__(self):
        self.bytes = bytearray()

    def align(self, size):
        self.bytes += b"\0" * (-len(self.bytes) % size)

    def put(self, kind, value):
        self.align(ALIGNMENT[kind[0]])
        if kind == "y":
            self.bytes.append(value)
        elif kind in "buh":
            self.bytes += struct.pack("<I", int(value))
        elif kind in "so":
            text = value.encode()
            self.bytes += struct.pack("<I", len(text)) + text + b"\0"
        elif kind == "g":
            self.bytes += bytes([len(value)]) + value.encode() + b"\0"
        elif kind == "v":
            self.put("g", value[0])
            self.put(value[0], value[1])
        elif kind[0] == "a":
            place = len(self.bytes)
            self.bytes += b"\0" * 4
            self.align(ALIGNMENT[kind[1]])
            start = len(self.bytes)
            for element in value:
                self.put(kind[1:], element)
            self.bytes[place:place + 4] = struct.pack("<I", len(self.bytes) - start)
        else:
            for one, element in zip(types(kind[1:-1]), value, strict=True):
                self.put(one, element)


class Reader:
    def __init__(self, data, place=0):
        self.data, self.place = data, place

    def take(self, count):
        self.place += count
        return self.data[self.place - count:self.place]

    def get(self, kind):
        self.place += -self.place % ALIGNMENT[kind[0]]
        if kind == "y":
            return self.take(1)[0]
        if kind in "buh":
            return struct.unpack("<I", self.take(4))[0]
        if kind in "so":
            return self.take(self.get("u") + 1)[:-1].decode()
        if kind == "g":
            return self.take(self.take(1)[0] + 1)[:-1].decode()
        if kind == "v":
            return self.get(self.get("g"))
        if kind[0] == "a":
            size = self.get("u")
            self.place += -self.place % ALIGNMENT[kind[1]]
            end, values = self.place + size, []
            while self.place < end:
                values.append(self.get(kind[1:]))
            return values
        return [self.get(one) for one in types(kind[1:-1])]


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.data = b""
        self.serial = 0
        self.say(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n", b"OK ")
        self.say(b"NEGOTIATE_UNIX_FD\r\n", b"AGREE_UNIX_FD")
        self.socket.sendall(b"BEGIN\r\n")

    def say(self, line, expected):
        self.socket.sendall(line)
        while b"\r\n" not in self.data:
            self.data += self.socket.recv(4096)
        answer, self.data = self.data.split(b"\r\n", 1)
        if not answer.startswith(expected):
            sys.exit(f"fake_logind: the bus says {answer!r}")

    def send(self, kind, fields, signature="", values=(), descriptor=None):
        """Fields are (number, type, value). Returns the serial."""
        body = Writer()
        for one, value in zip(types(signature), values, strict=True):
            body.put(one, value)
        fields = [(number, (type_, value)) for number, type_, value in fields]
        if signature:
            fields.append((8, ("g", signature)))
        if descriptor is not None:
            fields.append((9, ("u", 1)))
        self.serial += 1
        head = Writer()
        for type_, value in [("y", ord("l")), ("y", kind), ("y", 0), ("y", 1), ("u", len(body.bytes)), ("u", self.serial)]:
            head.put(type_, value)
        head.put("a(yv)", fields)
        head.align(8)
        message = bytes(head.bytes + body.bytes)
        if descriptor is None:
            self.socket.sendall(message)
        else:
            sent = socket.send_fds(self.socket, [message], [descriptor])
            self.socket.sendall(message[sent:])
        return self.serial

    def call(self, member, signature="", values=()):
        path = "/org/freedesktop/DBus"
        return self.send(CALL, [(1, "o", path), (2, "s", BUS), (3, "s", member), (6, "s", BUS)], signature, values)

    def received(self):
        """Reads what is there: messages as (type, serial, fields, values)."""
        data = self.socket.recv(65536)
        if not data:
            sys.exit(0)
        self.data += data
        messages = []
        while len(self.data) >= 16:
            size, serial, fields = struct.unpack("<III", self.data[4:16])
            body = 16 + fields + (-fields % 8)
            if len(self.data) < body + size:
                break
            head = {number: value for number, value in Reader(self.data, 12).get("a(yv)")}
            reader = Reader(self.data[body:body + size])
            messages.append((self.data[1], serial, head, [reader.get(one) for one in types(head.get(8, ""))]))
            self.data = self.data[body + size:]
        return messages


class Logind:
    def __init__(self, path, is_stranger):
        self.bus = Connection(path)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.bus.socket, selectors.EVENT_READ, self.messages)
        self.selector.register(0, selectors.EVENT_READ, self.commands)
        self.input = b""
        self.waiting = {}
        self.sessions, self.silent, self.refusing = {}, set(), set()
        self.refuses_list = self.is_asleep = self.is_holding = False
        self.held = []
        self.waiting[self.bus.call("Hello")] = self.hello
        self.is_stranger = is_stranger

    def run(self):
        while True:
            for key, _ in self.selector.select():
                key.data(key)

    def tell(self, line):
        os.write(1, line.encode() + b"\n")

    def hello(self, values):
        name = values[0]
        if self.is_stranger:
            return self.tell("ready " + name)
        # Queued behind one that is still there, so that a restart can be acted without a gap.
        self.waiting[self.bus.call("RequestName", "su", (LOGIN, 0))] = lambda values: self.tell("ready " + name)

    def messages(self, _):
        for kind, serial, fields, values in self.bus.received():
            if kind in (RETURN, ERROR) and fields[5] in self.waiting:
                self.waiting.pop(fields[5])(values)
            elif kind == CALL:
                self.answer(serial, fields, values)

    def answer(self, serial, fields, values):
        back = [(5, "u", serial), (6, "s", fields[7])]
        member = fields[3]
        if self.is_holding and member == "Inhibit":
            self.held.append((serial, fields, values))
        elif member == "ListSessions" and fields[2] == LOGIN + ".Manager" and not self.refuses_list:
            rows = [(id_, user, "name", "", SESSION + id_) for id_, user in ((id_, what[0]) for id_, what in self.sessions.items())]
            self.tell("listed")
            self.bus.send(RETURN, back, "a(susso)", [rows])
        elif member == "Inhibit" and not self.is_asleep:
            what, who, _, mode = values
            self.tell(f"inhibit {what} {who} {mode}")
            ours, theirs = os.pipe()
            self.bus.send(RETURN, back, "h", [0], theirs)
            os.close(theirs)
            self.selector.register(ours, selectors.EVENT_READ, self.closed)
        elif member == "Inhibit":
            self.tell("inhibit-refused")
            self.bus.send(ERROR, back + [(4, "s", LOGIN + ".OperationInProgress")], "s", ["already running"])
        elif member in ("Get", "GetAll") and values == [LOGIN + ".Session", "User"][:len(values)]:
            session = fields[1].removeprefix(SESSION)
            self.tell(("asked " if member == "Get" else "described ") + session)
            if self.is_holding:
                self.held.append((serial, fields, values))
            elif session in self.sessions and session not in self.refusing | self.silent:
                user, kind, state = self.sessions[session]
                who = ("(uo)", (user, f"{MANAGER}/user/_{user}"))
                if member == "Get":
                    self.bus.send(RETURN, back, "v", [who])
                else:
                    about = [("Id", ("s", session)), ("User", who), ("Active", ("b", True)), ("Class", ("s", kind)),
                             ("State", ("s", state)), ("Leader", ("u", 1))]
                    self.bus.send(RETURN, back, "a{sv}", [about])
            elif session not in self.silent:
                self.bus.send(ERROR, back + [(4, "s", BUS + ".Error.UnknownObject")], "s", ["no such session"])
        else:
            self.bus.send(ERROR, back + [(4, "s", BUS + ".Error.UnknownMethod")], "s", ["not here"])

    def closed(self, key):
        self.selector.unregister(key.fd)
        os.close(key.fd)
        self.tell("inhibit-closed")

    def commands(self, _):
        data = os.read(0, 4096)
        if not data:
            sys.exit(0)
        *lines, self.input = (self.input + data).split(b"\n")
        for line in lines:
            words = line.decode().split()
            target = None
            if words[0] == "to":
                target, words = words[1], words[2:]
            self.command(target, *words)

    def command(self, target, name, *words):
        flag = words[-1:] == ("true",)
        if name in ("session", "new"):
            self.sessions[words[0]] = (int(words[1]), *(words[2:] + ("user", "active")[len(words) - 2:]))
        if name == "new":
            self.signal(target, MANAGER, LOGIN + ".Manager", "SessionNew", "so", words[0], SESSION + words[0])
        elif name == "removed":
            self.sessions.pop(words[0], None)
            self.signal(target, MANAGER, LOGIN + ".Manager", "SessionRemoved", "so", words[0], SESSION + words[0])
        elif name == "user-removed":
            path = f"{MANAGER}/user/_{words[0]}"
            self.signal(target, MANAGER, LOGIN + ".Manager", "UserRemoved", "uo", int(words[0]), path)
        elif name == "silent":
            self.silent.add(words[0])
        elif name == "refusing":
            self.refusing.add(words[0])
        elif name == "lock":
            self.signal(target, SESSION + words[0], LOGIN + ".Session", "Lock", "")
        elif name in ("hold", "resume"):
            self.is_holding = name == "hold"
            held, self.held = self.held, []
            for question in held:
                self.answer(*question)
        elif name == "hint":
            changed = [("Active", ("b", True)), ("LockedHint", ("b", flag)), ("IdleSinceHint", ("s", "x"))]
            self.signal(
                target, SESSION + words[0], BUS + ".Properties", "PropertiesChanged", "sa{sv}as", LOGIN + ".Session",
                changed, ["State"])
        elif name == "sleep":
            self.signal(target, MANAGER, LOGIN + ".Manager", "PrepareForSleep", "b", flag)
        elif name == "no-list":
            self.refuses_list = flag
        elif name == "asleep":
            self.is_asleep = flag
        elif name == "release":
            self.bus.call("ReleaseName", "s", (LOGIN,))
        elif name == "forged-owner":
            path = "/org/freedesktop/DBus"
            self.signal(target, path, BUS, "NameOwnerChanged", "sss", LOGIN, "", words[0])
        elif name == "sync":
            self.waiting[self.bus.call("GetId")] = lambda values: self.tell("synced")
        elif name != "session":
            sys.exit(f"fake_logind: no command {name}")

    def signal(self, target, path, interface, member, signature, *values):
        fields = [(1, "o", path), (2, "s", interface), (3, "s", member)]
        if target:
            fields.append((6, "s", target))
        self.bus.send(SIGNAL, fields, signature, values)


Logind(sys.argv[1], "--stranger" in sys.argv).run()
