#!/usr/bin/env python3
"""An independent reader of the keychain's database and of its exports, written from the format pages alone.

It shares no code with the product and serves two ends: tests compare it with what the product writes, and it shows that
the pages say enough. It prints secrets, so it is for tests and for recovery by hand. Needs the `cryptography` package.

    keychain_reader.py items DATABASE HOME STATE [--passcode-file F | --recovery-key-file F]     what opens, a line each
    keychain_reader.py find DATABASE HOME STATE CLASS ATTRIBUTE TEXT          numbers of rows, found without class keys
    keychain_reader.py export FILE CAPSULE --recovery-key-file F              what opens of an export, a line each
    keychain_reader.py example                                                the worked example of the format page
"""

import argparse
import json
import os
import sqlite3
import struct
import sys
import uuid

from cryptography.hazmat.primitives import keywrap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candado_reader  # noqa: E402
import keybag_reader  # noqa: E402
from keybag_reader import Damaged, NAMES, expand, mac, require  # noqa: E402

DIGESTS = {
    "genp": ["acct", "svce", "labl", "gena"],
    "inet": ["acct", "sdmn", "srvr", "ptcl", "atyp", "port", "path", "labl"],
    "cert": ["ctyp", "issr", "slnr", "labl", "subj", "skid", "pkhh"],
    "keys": ["kcls", "klbl", "atag", "crtr", "type", "bsiz", "esiz", "sdat", "edat", "labl"],
}
PRIMARY_KEYS = {
    "genp": ["acct", "svce"],
    "inet": ["acct", "sdmn", "srvr", "ptcl", "atyp", "port", "path"],
    "cert": ["ctyp", "issr", "slnr"],
    "keys": ["kcls", "klbl", "atag", "crtr", "type", "bsiz", "esiz", "sdat", "edat"],
}
NUMBERS = {"ptcl", "port", "ctyp", "kcls", "crtr", "type", "bsiz", "esiz"}
DATES = {"sdat", "edat"}
HEADER = "identifier, access_group, synchronizable, tombstone, accessibility, generation, metadata, secret"


# "Attributes": a value is a pair of its kind and what it says.
def counted(data):
    return struct.pack(">I", len(data)) + data


def encode_value(kind, value):
    body = {
        "text": lambda: b"\x01" + counted(value.encode()),
        "data": lambda: b"\x02" + counted(bytes.fromhex(value)),
        "number": lambda: b"\x03" + struct.pack(">q", value),
        "real": lambda: b"\x04" + struct.pack(">d", value),
        "boolean": lambda: b"\x05" + bytes([value]),
        "date": lambda: b"\x06" + struct.pack(">d", value),
        "access control": lambda: b"\x07" + struct.pack(">BQ", *value),
        "list": lambda: b"\x08" + struct.pack(">I", len(value)) + b"".join(encode_value(*one) for one in value),
        "dictionary": lambda: b"\x09" + encode_dictionary(value),
        "null": lambda: b"\x0a",
    }
    return body[kind]()


def encode_dictionary(dictionary):
    entries = sorted((key.encode(), value) for key, value in dictionary.items())
    return struct.pack(">I", len(entries)) + b"".join(counted(key) + encode_value(*value) for key, value in entries)


class Reader:
    def __init__(self, data):
        self.data, self.offset = data, 0

    def take(self, count):
        require(self.offset + count <= len(self.data), "attributes: end")
        self.offset += count
        return self.data[self.offset - count:self.offset]

    def unpack(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))

    def counted(self):
        return self.take(self.unpack("I")[0])

    def value(self, depth):
        require(depth <= 8, "attributes: depth")
        kind = self.take(1)[0]
        if kind == 1:
            return "text", self.counted().decode()
        if kind == 2:
            return "data", self.counted().hex()
        if kind == 3:
            return "number", self.unpack("q")[0]
        if kind == 4:
            return "real", self.unpack("d")[0]
        if kind == 5:
            return "boolean", {0: False, 1: True}[self.take(1)[0]]
        if kind == 6:
            return "date", self.unpack("d")[0]
        if kind == 7:
            return "access control", list(self.unpack("BQ"))
        if kind == 8:
            return "list", [self.value(depth + 1) for _ in range(self.unpack("I")[0])]
        if kind == 9:
            return "dictionary", self.dictionary(depth + 1)
        require(kind == 10, "attributes: kind")
        return "null", None

    def dictionary(self, depth=0):
        result = {}
        for _ in range(self.unpack("I")[0]):
            key = self.counted().decode()
            result[key] = self.value(depth)
        return result


def decode_attributes(data):
    reader = Reader(data)
    attributes = reader.dictionary()
    require(reader.offset == len(data) and encode_dictionary(attributes) == data, "attributes: not canonical")
    return attributes


# "Digests"
def comparable(kind, value):
    if kind == "boolean":
        return "number", int(value)
    if kind == "real" and value == int(value):
        return "number", int(value)
    return kind, value


def attribute_digest(key, item_class, attribute, value):
    message = b"\x01" + item_class.encode() + counted(attribute.encode()) + encode_value(*comparable(*value))
    return mac(key, message)[:16]


def empty(attribute):
    if attribute in DATES:
        return "date", 0.0
    return ("number", 0) if attribute in NUMBERS else ("text", "")


def primary_key_digest(key, item_class, attributes, access_group, synchronizable):
    values = [attributes.get(name, empty(name)) for name in PRIMARY_KEYS[item_class]]
    message = b"\x02" + item_class.encode() + bytes([len(values)])
    message += b"".join(encode_value(*comparable(*value)) for value in values)
    return mac(key, message + counted(access_group.encode()) + bytes([synchronizable]))[:16]


# "Keys", "Metadata" and "Secret"
def metadata_key(class_key):
    return expand(class_key, b"class/item-metadata")


def secret_key(class_key):
    return expand(class_key, b"class/item-secret")


def binding(row, has_secret):
    numbers = [row["synchronizable"], row["tombstone"], row["accessibility"], row["generation"], int(has_secret)]
    return (b"\x01\x01" + row["class"].encode() + row["identifier"] + bytes(numbers) + row["metadata"][1:17]
            + row["access_group"].encode())


def secret_binding(row):
    associated = binding(row, True)
    group = struct.pack(">I", len(row["access_group"].encode()))
    return associated[:1] + b"\x02" + associated[2:] + group + row["metadata"]


def open_row(row, class_key):
    metadata, secret = row["metadata"], row["secret"]
    require(metadata[0] == 1, "metadata: version")
    plain = candado_reader.unseal(
        metadata_key(class_key), metadata[17:57], metadata[57:], binding(row, secret is not None), "metadata")
    attributes = decode_attributes(plain)
    if secret is None:
        return attributes, None
    require(secret[0] == 1 and secret[1:17] == metadata[1:17], "secret: pair number")
    key = keywrap.aes_key_unwrap(secret_key(class_key), secret[17:57])
    padded = candado_reader.unseal(key, secret[57:97], secret[97:], secret_binding(row), "secret")
    require(padded and len(padded) % 64 == 0, "secret: size")
    (count,) = struct.unpack(">I", padded[:4])
    rest = padded[4 + count:]
    require(4 + count <= len(padded) and len(rest) < 64 and not any(rest), "secret: padding")
    return attributes, padded[4:4 + count]


# "Tables"
def opened(database, application):
    connection = sqlite3.connect(f"file:{os.path.abspath(database)}?mode=ro", uri=True)
    require(connection.execute("PRAGMA application_id").fetchone()[0] == application, "database: application")
    require(connection.execute("PRAGMA user_version").fetchone()[0] == 1, "database: version")
    connection.row_factory = sqlite3.Row
    return connection


def checked(connection, home, state):
    identifier, device = keybag_reader.device_key(state)
    digest_key = expand(device, b"device/keychain-digest")
    row = connection.execute("SELECT keybag, digest_key_check FROM keychain").fetchone()
    require(row["keybag"] == identifier.bytes, "database: another keybag")
    require(row["digest_key_check"] == mac(digest_key, b"\x03")[:16], "database: another digest key")
    return digest_key


def items(database, home, state, passcode, recovery):
    connection = opened(database, 0x434B6579)
    digest_key = checked(connection, home, state)
    keys = keybag_reader.keybag(home, state, passcode, recovery)["keys"]
    for item_class in DIGESTS:
        for stored in connection.execute(f"SELECT * FROM {item_class} ORDER BY number"):
            row = dict(stored, **{"class": item_class})
            yield item(row, keys, digest_key)


def item(row, keys, digest_key=None):
    result = {"class": row["class"], "reference": (row["class"].encode() + row["identifier"]).hex(),
              "access_group": row["access_group"], "synchronizable": row["synchronizable"],
              "tombstone": row["tombstone"], "accessibility": NAMES[row["accessibility"]]}
    name = f"{NAMES[row['accessibility']]}/{row['generation']}"
    if name not in keys:
        return dict(result, locked=True)
    attributes, secret = open_row(row, bytes.fromhex(keys[name]))
    if digest_key is not None and not row["tombstone"]:
        require(row["primary_key"] == primary_key_digest(
            digest_key, row["class"], attributes, row["access_group"], row["synchronizable"]), "digest: primary key")
        for attribute in DIGESTS[row["class"]]:
            expected = None
            if attribute in attributes:
                expected = attribute_digest(digest_key, row["class"], attribute, attributes[attribute])
            require(row["digest_" + attribute] == expected, "digest: " + attribute)
    return dict(result, attributes=attributes, secret=None if secret is None else secret.hex())


def find(database, home, state, item_class, attribute, text):
    connection = opened(database, 0x434B6579)
    digest_key = checked(connection, home, state)
    require(attribute in DIGESTS[item_class], "no digest of that attribute")
    digest = attribute_digest(digest_key, item_class, attribute, ("text", text))
    found = connection.execute(
        f"SELECT number FROM {item_class} WHERE digest_{attribute} = ? AND tombstone = 0 ORDER BY number", [digest])
    return [row["number"] for row in found]


# "Exports"
def export(path, capsule, recovery):
    connection = opened(path, 0x434B6558)
    found = keybag_reader.capsule(open(capsule, "rb").read(), recovery)
    keybag = connection.execute("SELECT keybag FROM keychain").fetchone()["keybag"]
    require(uuid.UUID(bytes=keybag) == uuid.UUID(found["identifier"]), "export: another keybag")
    for stored in connection.execute(f"SELECT class, {HEADER} FROM item ORDER BY number"):
        yield item(dict(stored), found["keys"])


# "Worked example"
def example():
    class_key = bytes(range(0x41, 0x61))
    digest_key = bytes(range(0x61, 0x81))
    pair = bytes(range(0x20, 0x30))
    attributes = {"acct": ("text", "ana"), "svce": ("text", "mail"), "gena": ("data", "0102"),
                  "cdat": ("date", 0.0), "mdat": ("date", 1.5)}
    secret = "contraseña".encode()
    row = {"class": "genp", "identifier": bytes(range(16)), "access_group": "org.example.app", "synchronizable": 0,
           "tombstone": 0, "accessibility": 6, "generation": 0}
    encoded = encode_dictionary(attributes)
    row["metadata"] = b"\x01" + pair
    associated = binding(row, True)
    ciphertext, seal = candado_reader.seal(metadata_key(class_key), bytes(range(0x80, 0x98)), encoded, associated)
    row["metadata"] += seal + ciphertext
    item_key = bytes(range(0xA0, 0xC0))
    padded = counted(secret)
    padded += bytes(-len(padded) % 64)
    wrapped = keywrap.aes_key_wrap(secret_key(class_key), item_key)
    ciphertext, seal = candado_reader.seal(item_key, bytes(range(0xC0, 0xD8)), padded, secret_binding(row))
    row["secret"] = b"\x01" + pair + wrapped + seal + ciphertext
    require(open_row(row, class_key) == (attributes, secret), "example")
    result = {
        "metadata-key": metadata_key(class_key), "secret-wrapping-key": secret_key(class_key), "attributes": encoded,
        "associated-data": associated, "metadata": row["metadata"], "secret": row["secret"],
        "digest-acct": attribute_digest(digest_key, "genp", "acct", attributes["acct"]),
        "digest-svce": attribute_digest(digest_key, "genp", "svce", attributes["svce"]),
        "digest-gena": attribute_digest(digest_key, "genp", "gena", attributes["gena"]),
        "primary-key": primary_key_digest(digest_key, "genp", attributes, row["access_group"], 0),
        "digest-key-check": mac(digest_key, b"\x03")[:16],
    }
    return {name: value.hex() for name, value in result.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["items", "find", "export", "example"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--passcode-file")
    parser.add_argument("--recovery-key-file")
    options = parser.parse_args()
    passcode = open(options.passcode_file, "rb").read() if options.passcode_file else None
    recovery = keybag_reader.recovery_key(open(options.recovery_key_file).read()) if options.recovery_key_file else None
    try:
        if options.what == "example":
            for name, value in example().items():
                print(name)
                print(value)
            return
        if options.what == "find":
            print(json.dumps(find(*options.arguments)))
            return
        found = items if options.what == "items" else export
        arguments = options.arguments + ([passcode, recovery] if options.what == "items" else [recovery])
        for one in found(*arguments):
            print(json.dumps(one, sort_keys=True, ensure_ascii=False))
    except (Damaged, candado_reader.Damaged, keywrap.InvalidUnwrap, sqlite3.DatabaseError, ValueError, KeyError) as error:
        print(f"damaged: {error!r}", file=sys.stderr)
        sys.exit(14)


if __name__ == "__main__":
    main()
