#!/usr/bin/env python3
"""An independent reader of keybags, device keys, attempt files and recovery capsules, written from the format pages alone.

It shares no code with the product and serves two ends: tests compare it with what the product writes, and it shows that
the pages say enough. It prints keys, so it is for tests and for recovery by hand. Needs the `cryptography` package.

    keybag_reader.py keybag HOME STATE [--passcode-file F | --recovery-key-file F]     the keybag and what opens, as JSON
    keybag_reader.py attempts HOME STATE                                                the attempt file, as JSON
    keybag_reader.py capsule FILE --recovery-key-file F                                 the capsule and its keys, as JSON
"""

import argparse
import hashlib
import hmac
import json
import os
import struct
import sys
import uuid

from cryptography.hazmat.primitives import keywrap, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from candado_reader import xaes_key_and_nonce  # noqa: E402

NUMBERS = {"A": 1, "B": 2, "C": 3, "D": 4, "ak": 6, "ck": 7, "dk": 8, "aku": 9, "cku": 10, "dku": 11, "akpu": 12}
NAMES = {number: name for name, number in NUMBERS.items()}
ALWAYS = {"D", "dk", "dku"}


class Damaged(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Damaged(what)


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def expand(key, label, rest=b""):
    """HKDF-Expand, one block, with a label of the key schedule."""
    return mac(key, b"candado/v1/" + label + b"\0" + rest + b"\x01")


def extract(salt, key):
    return mac(salt or bytes(32), key)


def public_key(private):
    key = X25519PrivateKey.from_private_bytes(private).public_key()
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def unwrap(key, wrapped):
    return keywrap.aes_key_unwrap(key, wrapped)


# docs/formats/device-key.md
def device_key(state):
    data = open(os.path.join(state, "device-key"), "rb").read()
    require(len(data) == 104 and data[:16] == b"candado-device\n\0", "device key: size or magic")
    require(hmac.compare_digest(mac(data[40:72], data[:40]), data[72:]), "device key: check")
    require(struct.unpack("<II", data[16:24]) == (1, 0), "device key: version")
    return uuid.UUID(bytes=data[24:40]), data[40:72]


# docs/formats/recovery-capsule.md, "The recovery key"
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def recovery_key(text):
    symbols = [c for c in text.upper() if c not in "- \t\r\n"]
    values = [ALPHABET.index({"O": "0", "I": "1", "L": "1"}.get(c, c)) for c in symbols]
    require(len(values) == 36, "recovery key: length")
    number = 0
    for value in values[:32]:
        number = number << 5 | value
    seed = number.to_bytes(20, "big")
    check = int.from_bytes(mac(seed, b"candado recovery key text")[:3], "big") >> 4
    require([check >> shift & 31 for shift in (15, 10, 5, 0)] == values[32:], "recovery key: mistyped")
    return extract(b"", seed)


# docs/formats/keybag.md
def keybag(home, state, passcode=None, recovery=None):
    raw = open(os.path.join(home, "keybag.json"), "rb").read()
    document = json.loads(raw)
    canonical = lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")).encode()  # noqa: E731
    require(canonical(document) + b"\n" == raw, "keybag: not canonical")
    identifier, device = device_key(state)
    body = {name: value for name, value in document.items() if name != "authenticator"}
    require(mac(expand(device, b"device/keybag-authentication"), canonical(body)).hex() == document["authenticator"],
            "keybag: authenticator")
    require((document["format"], document["version"], document["features"]) == ("candado-keybag", 1, 0), "keybag: version")
    require(str(identifier) == document["identifier"], "keybag: identifier")

    result = {"identifier": str(identifier), "change": document["change"], "keys": {}}
    slots = document["slots"]
    user = None
    if "device" in slots:
        user = unwrap(expand(device, b"slot/device"), bytes.fromhex(slots["device"]["wrapped"]))
    elif passcode is not None:
        slot = slots["passcode"]
        n = 1 << slot["log_n"]
        output = hashlib.scrypt(passcode, salt=bytes.fromhex(slot["salt"]), n=n, r=slot["r"], p=slot["p"],
                                maxmem=1 << 27, dklen=32)
        result["passcode_key"] = output.hex()
        result["slot_key"] = expand(output, b"slot/passcode").hex()
        user = unwrap(expand(output, b"slot/passcode"), bytes.fromhex(slot["wrapped"]))
    elif recovery is not None:
        user = unwrap(expand(recovery, b"slot/recovery"), bytes.fromhex(slots["recovery"]["wrapped"]))
    device_wrapping = expand(device, b"device/class-keys")
    keybag_key = None
    if user is not None:
        keybag_key = expand(extract(device, user), b"keybag/class-keys")
        result["user_key"] = user.hex()
        result["keybag_key"] = keybag_key.hex()

    def one(key, number, generation):
        return expand(key, b"keybag/one-class-key", bytes([number, generation]) + identifier.bytes)

    for name, entry in document["classes"].items():
        key = device_wrapping if name in ALWAYS else keybag_key
        for generation in entry["generations"]:
            if key is None:
                continue
            number = generation["generation"]
            secret = unwrap(one(key, NUMBERS[name], number), bytes.fromhex(generation["wrapped"]))
            if name == "B":
                require(public_key(secret).hex() == generation["public"], "keybag: public key of class B")
            result["keys"][f"{name}/{number}"] = secret.hex()
    if keybag_key is not None and "recovery" in document:
        secret = unwrap(one(keybag_key, 0, 0), bytes.fromhex(document["recovery"]["authentication"]))
        result["recovery_authentication_key"] = secret.hex()
    return result


# docs/formats/attempts.md
def attempts(home, state):
    _, device = device_key(state)
    data = open(os.path.join(state, "attempts"), "rb").read()
    require(len(data) == 1024, "attempts: size")
    key = expand(device, b"device/attempt-authentication")
    best = None
    for slot in (data[:512], data[512:]):
        if slot[:8] != b"cndtries" or not hmac.compare_digest(mac(key, slot[:480]), slot[480:]):
            continue
        version, digests, counter, tries, wrong, boot, epoch = struct.unpack("<IIQIIQq", slot[8:48])
        require(version == 1 and digests <= 8, "attempts: version")
        record = {"counter": counter, "tries": tries, "wrong": wrong, "boot_milliseconds": boot, "epoch_seconds": epoch,
                  "digests": [slot[48 + 32 * i:80 + 32 * i].hex() for i in range(digests)]}
        if best is None or record["counter"] > best["counter"]:
            best = record
    require(best is not None, "attempts: no good slot")
    return best


# docs/formats/recovery-capsule.md
def capsule(data, recovery):
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    require(data[:16] == b"candado-capsule\n", "capsule: magic")
    require(hashlib.sha256(data[:-32]).digest() == data[-32:], "capsule: digest")
    require(struct.unpack("<II", data[16:24]) == (1, 0), "capsule: version")
    require(hmac.compare_digest(mac(expand(recovery, b"recovery/authentication"), data[:-64]), data[-64:-32]),
            "capsule: authenticator")
    private = expand(recovery, b"recovery/agreement")
    public = data[48:80]
    require(public_key(private) == public, "capsule: another recovery key")
    following = dict(zip(sorted(NAMES), struct.unpack("<11H", data[80:102])))
    (count,) = struct.unpack("<H", data[102:104])
    start = 104 + 2 * count
    context, box = data[:start], data[start:-64]
    require(box[0] == 1 and len(box) == 73 + 32 * count, "capsule: box")
    ephemeral = box[1:33]
    shared = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(ephemeral))
    key = expand(extract(b"", shared), b"sealed-box", ephemeral + public + context)
    derived, nonce = xaes_key_and_nonce(key, box[33:57])
    secret = AESGCM(derived).decrypt(nonce, box[73:] + box[57:73], box[:33])
    names = [f"{NAMES[data[104 + 2 * i]]}/{data[105 + 2 * i]}" for i in range(count)]
    return {"identifier": str(uuid.UUID(bytes=data[24:40])), "change": struct.unpack("<Q", data[40:48])[0],
            "public": public.hex(), "next": {NAMES[number]: value for number, value in following.items()},
            "keys": {name: secret[32 * i:32 * i + 32].hex() for i, name in enumerate(names)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["keybag", "attempts", "capsule"])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--passcode-file")
    parser.add_argument("--recovery-key-file")
    options = parser.parse_args()
    passcode = open(options.passcode_file, "rb").read() if options.passcode_file else None
    recovery = recovery_key(open(options.recovery_key_file).read()) if options.recovery_key_file else None
    try:
        if options.what == "keybag":
            result = keybag(*options.paths, passcode, recovery)
        elif options.what == "attempts":
            result = attempts(*options.paths)
        else:
            result = capsule(open(options.paths[0], "rb").read(), recovery)
    except (Damaged, keywrap.InvalidUnwrap) as error:
        sys.exit(f"damaged: {error!r}")
    json.dump(result, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
