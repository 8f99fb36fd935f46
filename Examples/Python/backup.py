#!/usr/bin/env python3
"""Backs a tree up with its protection: ciphertext and key records together, without any key, whatever is locked.

usage: backup.py SOURCE TARGET     TARGET must not exist, and not lie within SOURCE

One line a file on stdout: its class, its path, what became of it. Kept are bytes, key records, links, permissions, times and,
for root, owners; setuid and setgid only where the owner is kept. Not kept are other extended attributes (ACLs among them),
hard links (each name becomes a file of its own) and holes; left out are devices, sockets and pipes. A file that is written
to meanwhile is copied again, and told when that does not help: a snapshot of the file system is the better source then.

Ends with 0 when every file was copied and the copy verified, with 1 when some were not, and with 64 for wrong usage. The
copies open wherever the keybag of SOURCE is, or is restored to. Needs libcandado.so.1 where the loader finds it.
"""

import ctypes
import errno
import hashlib
import os
import stat
import sys

RECORD_SIZE = 124  # CANDADO_RECORD_SIZE
RECORD_ATTRIBUTE = "user.candado"  # CANDADO_RECORD_ATTRIBUTE
TRIES = 3  # for a file that is written to meanwhile


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


class ReportFailed(Exception):
    """Nobody can be told any more what becomes of the files."""


class Backup:
    """One run."""

    def __init__(self, candado):
        self.candado = candado
        self.failures = 0
        # What some of the files have that their copies have not.
        self.lost = set()

    def report(self, name, path, outcome):
        line = f"{name or 'plain':<22} {os.fsdecode(path)!r}: {outcome}"
        try:
            print(line.encode("utf-8", "backslashreplace").decode("utf-8"), flush=True)
        except OSError as error:
            raise ReportFailed(error.strerror) from error

    def failed(self, path, outcome):
        self.failures += 1
        self.report("?", path, outcome)

    def tree(self, source, target):
        """Copies a directory and all that is below it."""
        directory = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.mkdir(target, 0o700)
            try:
                self.directory_record(directory, source, target)
                with os.scandir(source) as entries:
                    for entry in sorted(entries, key=lambda entry: entry.name):
                        self.guarded(entry, os.path.join(target, entry.name))
            finally:
                # Last: it may forbid to make anything in it.
                self.dress(os.fstat(directory), target)
        finally:
            os.close(directory)

    def directory_record(self, directory, source, target):
        """The class that the directory gives to new files. What is in it is copied whatever is wrong with that."""
        copy = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
        try:
            name = self.candado.class_of(directory)
            self.candado.set_record(copy, self.candado.record_of(directory))
            self.report(f"({name or 'no class'})", source, "directory")
        except Candado.Error as error:
            try:
                self.attribute(directory, copy)
                self.failed(source, f"directory, copied as it is: {error.strerror}")
            except OSError as second:
                self.failed(source, f"directory, copied WITHOUT its record: {error.strerror}; {second.strerror}")
        finally:
            os.close(copy)

    def guarded(self, entry, target):
        """One entry: what goes wrong with it is told, and the next one has its turn."""
        try:
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
                self.dress(entry.stat(follow_symlinks=False), target)
                self.report("-", entry.path, "link")
            elif entry.is_dir(follow_symlinks=False):
                self.tree(entry.path, target)
            elif entry.is_file(follow_symlinks=False):
                self.file(entry.path, target)
            else:
                self.report("-", entry.path, "left out: neither file, directory nor link")
        except OSError as error:
            self.failed(entry.path, f"FAILED: {error.strerror or error}")

    def file(self, source, target):
        """Copies the bytes as they are stored, and the record; then looks whether the copy is the same."""
        original = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            # A file that is damaged is copied as it is: its attribute as well.
            for _ in range(TRIES):
                before = os.fstat(original)
                problem, name, record = None, None, b""
                try:
                    name, record = self.candado.class_of(original), self.candado.record_of(original)
                except Candado.Error as error:
                    problem = error.strerror
                digest = self.copy(original, target, problem, record)
                self.note_lost(original, before)
                changed = self.state(os.fstat(original)) != self.state(before)
                if not changed:
                    break
            self.dress(before, target)
        finally:
            os.close(original)
        if changed:
            self.failed(source, "copied, but it was written to meanwhile: the copy may be damaged")
        elif problem is not None:
            self.failed(source, f"copied as it is: {problem}")
        else:
            self.verify(source, target, digest, name, record)

    def copy(self, original, target, problem, record):
        """One copy, instead of the one before. Gives the digest of what was read."""
        try:
            os.unlink(target)
        except FileNotFoundError:
            pass
        os.lseek(original, 0, os.SEEK_SET)
        copy = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            digest = self.copy_bytes(original, copy)
            if problem is None:
                self.candado.set_record(copy, record)
            else:
                self.attribute(original, copy)
            os.fsync(copy)
        finally:
            os.close(copy)
        return digest

    def note_lost(self, original, status):
        if status.st_nlink > 1:
            self.lost.add("hard links")
        if status.st_blocks * 512 < status.st_size:
            self.lost.add("holes")
        if set(self.attributes(original)) - {RECORD_ATTRIBUTE}:
            self.lost.add("other attributes")

    @staticmethod
    def state(status):
        """What is another after a write, or after a change of the record."""
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns

    @staticmethod
    def attributes(descriptor):
        try:
            return os.listxattr(descriptor)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                return []
            raise

    def attribute(self, original, copy):
        """The bytes of the attribute, whatever they are."""
        if RECORD_ATTRIBUTE in self.attributes(original):
            os.setxattr(copy, RECORD_ATTRIBUTE, os.getxattr(original, RECORD_ATTRIBUTE))

    def verify(self, source, target, digest, name, record):
        copy = os.open(target, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            same = self.digest(copy) == digest
            same = same and self.candado.record_of(copy) == record and self.candado.class_of(copy) == name
        finally:
            os.close(copy)
        if same:
            self.report(name, source, "copied and verified")
        else:
            self.failed(source, "FAILED: the copy is not the same")

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
    def dress(status, target):
        """Owner, permissions and times, in the order in which one does not undo another."""
        if os.geteuid() == 0:
            try:
                os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)
            except OSError:
                pass  # Not everywhere may root do so: what that means for the permissions is seen below.
        copy = os.lstat(target)
        if not stat.S_ISLNK(status.st_mode):
            mode = stat.S_IMODE(status.st_mode)
            # A program runs as the owner of the file: of another owner it would be another's.
            if copy.st_uid != status.st_uid:
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
            if copy.st_gid != status.st_gid:
                mode &= ~stat.S_ISGID
            os.chmod(target, mode)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


def within(source, target):
    """Whether the target would be copied into itself."""
    parent = os.path.realpath(os.path.dirname(os.path.abspath(target)))
    return os.path.commonpath([os.path.realpath(source), parent]) == os.path.realpath(source)


def main(words):
    if len(words) == 2 and words[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if len(words) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 64
    # Names are bytes, and need not be text.
    source, target = os.fsencode(words[1]), os.fsencode(words[2])
    problem = None
    if not os.path.isdir(source):
        problem = f"{words[1]!r}: not a directory"
    elif os.path.lexists(target):
        problem = f"{words[2]!r}: the target exists already"
    elif within(source, target):
        problem = f"{words[2]!r}: the target lies within the source"
    if problem:
        print(f"backup.py: {problem}", file=sys.stderr)
        return 64
    try:
        backup = Backup(Candado())
        backup.tree(os.path.realpath(source) if os.path.islink(source) else source, target)
    except ReportFailed as error:
        # What is still in the buffer would fail again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"backup.py: stdout: {error}: the backup is not complete", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"backup.py: {error}", file=sys.stderr)
        return 1
    if backup.lost:
        print(f"backup.py: not kept: {', '.join(sorted(backup.lost))}", file=sys.stderr)
    if backup.failures:
        print(f"backup.py: {backup.failures} of them have a problem: the lines with '?' say which", file=sys.stderr)
    return 1 if backup.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
