#!/usr/bin/env python3
"""An independent reader of containers and key records, written from the format pages alone.

It shares no code with the product and serves two ends: tests compare it with what the product writes, and it shows that
the pages say enough. Needs the `cryptography` package. It takes the lock of nobody: read files at rest only.

    candado_reader.py content FILE --file-key HEX            the content, to standard output
    candado_reader.py content FILE --class-key HEX [--class-public HEX]
    candado_reader.py record FILE                            what the key record says, as JSON
    candado_reader.py example                                the worked examples of the format pages
"""

import argparse
import hashlib
import hmac
import json
import os
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import keywrap
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CHUNK = 4096
FIRST_GROUP = 76
GROUP = 102
SEAL = 40


class Damaged(Exception):
    pass


def expand(key, information):
    """HKDF-Expand with SHA-256, RFC 5869, one block."""
    return hmac.new(key, information + b"\x01", hashlib.sha256).digest()


# XAES-256-GCM, from the C2SP specification.
def xaes_key_and_nonce(key, nonce):
    def block(data):
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(data)

    first = int.from_bytes(block(bytes(16)), "big") << 1
    if first >> 128:
        first = (first & ((1 << 128) - 1)) ^ 0x87
    first = first.to_bytes(16, "big")
    derived = b""
    for counter in (1, 2):
        message = bytes([0, counter, 0x58, 0]) + nonce[:12]
        derived += block(bytes(a ^ b for a, b in zip(message, first)))
    return derived, nonce[12:]


def seal(key, nonce, plaintext, associated):
    derived, short = xaes_key_and_nonce(key, nonce)
    sealed = AESGCM(derived).encrypt(short, plaintext, associated)
    return sealed[:-16], nonce + sealed[-16:]


def unseal(key, chunk_seal, ciphertext, associated, what):
    derived, short = xaes_key_and_nonce(key, chunk_seal[:24])
    try:
        return AESGCM(derived).decrypt(short, ciphertext + chunk_seal[24:], associated)
    except InvalidTag:
        raise Damaged(what)


# The key record.
def parse_record(data):
    if not data or data[0:1] != b"1":
        raise Damaged("record: version")
    letter = chr(data[1])
    if letter not in "ABCD" or data[2] & ~1:
        raise Damaged("record: class or flags")
    record = {"class": letter, "flags": data[2], "generation": data[3], "keybag": data[4:20], "prefix": data[:20]}
    if len(data) == 20:
        return record
    if letter == "B":
        if len(data) != 124:
            raise Damaged("record: size")
        record.update(public=data[20:52], wrap=data[52:92], mac=data[92:124])
    elif len(data) == 60:
        record.update(wrap=data[20:60])
    else:
        raise Damaged("record: size")
    return record


def unwrap(record, class_key, class_public=None):
    if record["class"] == "B":
        shared = X25519PrivateKey.from_private_bytes(class_key).exchange(
            X25519PublicKey.from_public_bytes(record["public"]))
        wrapping = hashlib.sha256(b"\x00\x00\x00\x01" + shared + record["public"] + class_public).digest()
    else:
        wrapping = expand(class_key, b"candado/v1/class/file-key\x00" + record["prefix"])
    try:
        file_key = keywrap.aes_key_unwrap(wrapping, record["wrap"])
    except keywrap.InvalidUnwrap:
        raise Damaged("unwrap")
    if record["class"] == "B":
        mac_key = expand(file_key, b"candado/v1/file/record\x00")
        covered = record["prefix"] + record["public"] + record["wrap"]
        if not hmac.compare_digest(hmac.new(mac_key, covered, hashlib.sha256).digest(), record["mac"]):
            raise Damaged("unwrap: MAC")
    return file_key


# The container.
def place(chunk):
    """Offsets of a chunk and of its seal."""
    if chunk < FIRST_GROUP:
        return CHUNK * (1 + chunk), 1024 + SEAL * chunk
    group, index = divmod(chunk - FIRST_GROUP, GROUP)
    start = CHUNK * (1 + FIRST_GROUP + group * (1 + GROUP))
    return start + CHUNK * (1 + index), start + SEAL * index


def parse_slot(slot):
    if len(slot) != 512 or slot[:8] != b"CANDADO\x1a":
        raise Damaged("header: magic")
    version, record_size, features = struct.unpack_from("<HHI", slot, 8)
    if version != 1 or features:
        raise Damaged("header: newer version")
    counter, length, synced, log_offset, log_identifier, log_entries, reserved = struct.unpack_from(
        "<QQQQQII", slot, 16)
    if record_size > 128 or reserved or any(slot[64 + record_size:472]) or synced > length:
        raise Damaged("header: fields")
    return {
        "counter": counter, "length": length, "synced": synced, "record": slot[64:64 + record_size],
        "log": (log_offset, log_identifier, log_entries) if log_offset else None, "slot": slot,
    }


def newest_header(data, file_key):
    headers = []
    for start in (0, 512):
        try:
            header = parse_slot(data[start:start + 512])
            unseal(file_key, header["slot"][472:], b"", b"candado/v1/header" + header["slot"][:472], "header")
            headers.append(header)
        except Damaged:
            continue
    if not headers:
        raise Damaged("header")
    return max(headers, key=lambda header: header["counter"])


def read_log(data, header, file_key):
    """The chunks whose newest form is in the log, and the length after it."""
    offset, identifier, sealed_entries = header["log"]
    logged, pending, length = {}, [], header["length"]
    sequence, previous, whole = 0, bytes(16), 0
    while not sealed_entries or sequence < sealed_entries:
        entry = data[offset:offset + 136]
        if len(entry) < 136 or entry[:4] != b"redo":
            break
        flags, entry_identifier, entry_sequence, chunk, after = struct.unpack_from("<IQQQQ", entry, 4)
        if (flags & ~3, entry_identifier, entry_sequence, entry[40:56]) != (0, identifier, sequence, previous):
            break
        try:
            unseal(file_key, entry[96:], b"", b"candado/v1/redo" + entry[:96], "redo entry")
            if flags & 2:
                ciphertext = data[offset + 136:offset + 136 + CHUNK]
                unseal(file_key, entry[56:96], ciphertext, b"candado/v1/chunk" + struct.pack("<Q", chunk), "redo chunk")
                pending.append((chunk, entry[56:96], ciphertext))
        except Damaged:
            break
        sequence, previous = sequence + 1, entry[-16:]
        offset += 136 + (CHUNK if flags & 2 else 0)
        if flags & 1:
            for chunk, chunk_seal, ciphertext in pending:
                logged[chunk] = (chunk_seal, ciphertext)
            pending, whole = [], sequence
            if after < length:
                logged = {chunk: value for chunk, value in logged.items() if chunk < -(-after // CHUNK)}
            length = after
    if sealed_entries:
        return (logged if whole == sealed_entries else {}), header["length"]
    return logged, length


def read_content(data, file_key):
    header = newest_header(data, file_key)
    logged, length = read_log(data, header, file_key) if header["log"] else ({}, header["length"])
    content = b""
    for chunk in range(-(-length // CHUNK)):
        chunk_offset, seal_offset = place(chunk)
        chunk_seal, ciphertext = logged.get(
            chunk, (data[seal_offset:seal_offset + SEAL], data[chunk_offset:chunk_offset + CHUNK]))
        try:
            if len(ciphertext) != CHUNK or len(chunk_seal) != SEAL:
                raise Damaged(f"chunk {chunk}")
            content += unseal(
                file_key, chunk_seal, ciphertext, b"candado/v1/chunk" + struct.pack("<Q", chunk), f"chunk {chunk}")
        except Damaged:
            if chunk * CHUNK < header["synced"]:
                raise
            return content[:max(chunk * CHUNK, header["synced"])]
    return content[:length]


# Worked examples: keys and nonces are counted up, so that nobody takes them for real ones.
def example():
    class_key = bytes(range(0x41, 0x61))
    file_key = bytes(range(0x01, 0x21))
    prefix = b"1C\x00\x00" + bytes(range(16))
    wrapping = expand(class_key, b"candado/v1/class/file-key\x00" + prefix)
    record = prefix + keywrap.aes_key_wrap(wrapping, file_key)
    content = b"hello\n"
    slots = b""
    for counter in (1, 2):
        fields = b"CANDADO\x1a" + struct.pack(
            "<HHIQQQQQII", 1, len(record), 0, counter, len(content), len(content), 0, 0, 0, 0) + record
        fields = fields.ljust(472, b"\x00")
        nonce = bytes(range(0x80 + counter, 0x98 + counter))
        slots += fields + seal(file_key, nonce, b"", b"candado/v1/header" + fields)[1]
    chunk, chunk_seal = seal(
        file_key, bytes(range(0xA0, 0xB8)), content.ljust(CHUNK, b"\x00"), b"candado/v1/chunk" + struct.pack("<Q", 0))
    container = slots + chunk_seal.ljust(CHUNK - 1024, b"\x00") + chunk
    assert read_content(container, file_key) == content
    assert unwrap(parse_record(record), class_key) == file_key
    return {
        "class key": class_key, "file key": file_key, "prefix": prefix, "wrapping key": wrapping, "record": record,
        "slot 0": container[:512], "slot 1": container[512:1024], "seal of chunk 0": chunk_seal,
        "chunk 0 begins": chunk[:32], "sha-256 of the container": hashlib.sha256(container).digest(),
        "container": container,
    }


def attribute(path):
    try:
        return os.getxattr(path, "user.candado")
    except OSError:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    content = commands.add_parser("content")
    content.add_argument("file")
    content.add_argument("--file-key", type=bytes.fromhex)
    content.add_argument("--class-key", type=bytes.fromhex)
    content.add_argument("--class-public", type=bytes.fromhex)
    commands.add_parser("record").add_argument("file")
    commands.add_parser("example").add_argument("--container", help="write the example container here")
    arguments = parser.parse_args()
    try:
        if arguments.command == "example":
            for name, value in example().items():
                if name == "container":
                    if arguments.container:
                        open(arguments.container, "wb").write(value)
                    continue
                print(f"{name}\n{value.hex()}")
            return 0
        with open(arguments.file, "rb") as file:
            data = file.read()
        record = attribute(arguments.file)
        if arguments.command == "record":
            parsed = parse_record(record or parse_slot(data[:512])["record"])
            print(json.dumps({key: value.hex() if isinstance(value, bytes) else value for key, value in parsed.items()}))
            return 0
        file_key = arguments.file_key
        if file_key is None:
            file_key = unwrap(
                parse_record(record or parse_slot(data[:512])["record"]), arguments.class_key, arguments.class_public)
        sys.stdout.buffer.write(read_content(data, file_key))
        return 0
    except Damaged as damage:
        print(f"damaged: {damage}", file=sys.stderr)
        return 14


if __name__ == "__main__":
    sys.exit(main())
