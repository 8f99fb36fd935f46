#!/usr/bin/env python3
"""Backs a tree up with its protection: ciphertext and key records together, without any key, whatever is locked.

usage: backup.py SOURCE TARGET     TARGET must not exist; one line a file on stdout: its class, its path, what became of it

Ends with 0 when every file was copied and the copy verified, with 1 when some were not, and with 64 for wrong usage. The
copies open wherever the keybag of SOURCE is, or is restored to. Needs libcandado.so.1 where the loader finds it.
"""

import ctypes
import hashlib
import os
import stat
import sys

RECORD_SIZE = 124  # CANDADO_RECORD_SIZE
RECORD_ATTRIBUTE = "user.candado"  # CANDADO_RECORD_ATTRIBUTE


class Candado:
    """The few functions of libcandado that a backup needs. None of them needs a key, or an agent."""

    class Error(OSError):
        """What a function said."""

    def __init__(self):
        self._library = library = ctypes.CDLL("libcandado.so.1", use_errno=True)
        size, number = ctypes.c_size_t, ctypes.c_int
        library.candado_error.restype = size
        library.candado_error.argtypes = [ctypes.c_char_p, size]
        library.candado_class_name.restype = ctypes.c_char_p
        library.candado_class_name.argtypes = [number]
        library.candado_class_of_descriptor.argtypes = [number]
        library.candado_record_of_descriptor.restype = ctypes.c_ssize_t
        library.candado_record_of_descriptor.argtypes = [number, ctypes.c_char_p, size]
        library.candado_set_record_of_descriptor.argtypes = [number, ctypes.c_uint, ctypes.c_char_p, size]

    def _checked(self, result):
        if result == -1:
            sentence = ctypes.create_string_buffer(1024)
            self._library.candado_error(sentence, len(sentence))
            raise self.Error(ctypes.get_errno(), sentence.value.decode("utf-8", "replace"))
        return result

    def class_of(self, descriptor):
        """The name of the class that a file claims or a directory gives to new files; None without one."""
        number = self._checked(self._library.candado_class_of_descriptor(descriptor))
        return self._library.candado_class_name(number).decode() if number else None

    def record_of(self, descriptor):
        """The bytes of the key record that counts; empty for a plain file."""
        buffer = ctypes.create_string_buffer(RECORD_SIZE)
        count = self._checked(self._library.candado_record_of_descriptor(descriptor, buffer, RECORD_SIZE))
        return buffer.raw[:count]

    def set_record(self, descriptor, record):
        """Stores a key record on a copy."""
        if record:
            self._checked(self._library.candado_set_record_of_descriptor(descriptor, 0, record, len(record)))


class Backup:
    """One run."""

    def __init__(self, candado):
        self.candado = candado
        self.failures = 0

    def report(self, name, path, outcome):
        line = f"{name or 'plain':<22} {os.fsdecode(path)!r}: {outcome}"
        print(line.encode("utf-8", "backslashreplace").decode("utf-8"))

    def tree(self, source, target):
        """Copies a directory and all that is below it."""
        directory = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.mkdir(target, 0o700)
            self.directory_record(directory, source, target)
            with os.scandir(source) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    self.guarded(entry, os.path.join(target, entry.name))
            # Last: it may forbid to make anything in it.
            status = os.fstat(directory)
            os.chmod(target, stat.S_IMODE(status.st_mode))
            self.times(status, target)
        finally:
            os.close(directory)

    def directory_record(self, directory, source, target):
        copy = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
        try:
            name = self.candado.class_of(directory)
            self.candado.set_record(copy, self.candado.record_of(directory))
            self.report(f"({name or 'no class'})", source, "directory")
        except Candado.Error as error:
            # What is in it is copied all the same.
            self.attribute(directory, copy)
            self.failures += 1
            self.report("?", source, f"directory, copied as it is: {error.strerror}")
        finally:
            os.close(copy)

    def guarded(self, entry, target):
        """One entry: what goes wrong with it is told, and the next one has its turn."""
        try:
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
                self.report("-", entry.path, "link")
            elif entry.is_dir(follow_symlinks=False):
                self.tree(entry.path, target)
            elif entry.is_file(follow_symlinks=False):
                self.file(entry.path, target)
            else:
                self.report("-", entry.path, "left out: neither file, directory nor link")
        except OSError as error:
            self.failures += 1
            self.report("?", entry.path, f"FAILED: {error.strerror or error}")

    def file(self, source, target):
        """Copies the bytes as they are stored, and the record; then looks whether the copy is the same."""
        original = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            # A file that is damaged is copied as it is: its attribute as well.
            problem, name, record = None, None, b""
            try:
                name, record = self.candado.class_of(original), self.candado.record_of(original)
            except Candado.Error as error:
                problem = error.strerror
            copy = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                digest = self.copy_bytes(original, copy)
                if problem is None:
                    self.candado.set_record(copy, record)
                else:
                    self.attribute(original, copy)
                status = os.fstat(original)
                os.fchmod(copy, stat.S_IMODE(status.st_mode))
                os.fsync(copy)
            finally:
                os.close(copy)
            self.times(status, target)
        finally:
            os.close(original)
        if problem is not None:
            self.failures += 1
            self.report("?", source, f"copied as it is: {problem}")
        else:
            self.verify(source, target, digest, name, record)

    @staticmethod
    def attribute(original, copy):
        """The bytes of the attribute, whatever they are."""
        if RECORD_ATTRIBUTE in os.listxattr(original):
            os.setxattr(copy, RECORD_ATTRIBUTE, os.getxattr(original, RECORD_ATTRIBUTE))

    def verify(self, source, target, digest, name, record):
        copy = os.open(target, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            same = self.digest(copy) == digest
            same = same and self.candado.record_of(copy) == record and self.candado.class_of(copy) == name
        finally:
            os.close(copy)
        if not same:
            self.failures += 1
        self.report(name, source, "copied and verified" if same else "FAILED: the copy is not the same")

    @staticmethod
    def copy_bytes(original, copy):
        digest = hashlib.sha256()
        while block := os.read(original, 1 << 20):
            digest.update(block)
            view = memoryview(block)
            while view:
                view = view[os.write(copy, view):]
        return digest.digest()

    @staticmethod
    def digest(descriptor):
        digest = hashlib.sha256()
        while block := os.read(descriptor, 1 << 20):
            digest.update(block)
        return digest.digest()

    @staticmethod
    def times(status, target):
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def main(words):
    if len(words) != 3 or not os.path.isdir(words[1]) or os.path.lexists(words[2]):
        print(__doc__.strip(), file=sys.stderr)
        return 64
    try:
        backup = Backup(Candado())
        # Names are bytes, and need not be text.
        backup.tree(os.fsencode(words[1]), os.fsencode(words[2]))
    except OSError as error:
        print(f"backup.py: {error}", file=sys.stderr)
        return 1
    return 1 if backup.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
