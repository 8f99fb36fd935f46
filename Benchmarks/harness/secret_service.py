"""Measures gnome-keyring over D-Bus, as the peer of the keychain: prints seconds of one operation, the median.

usage: secret_service.py HOME add PRESENT COUNT       COUNT new items where PRESENT are
       secret_service.py HOME find PRESENT COUNT      search and secret of one of PRESENT
       secret_service.py HOME prepare PRESENT 0       a keyring of so many items, which the others copy

Runs a bus and a daemon of its own, without a screen. HOME is a scratch directory; PRESENT items are made in it once.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def on_own_bus():
    """Begins again inside a bus of its own, in a copy of the home."""
    home, verb, present = sys.argv[1], sys.argv[2], int(sys.argv[3])
    prepared = os.path.join(home, f"keyring-{present}")
    if verb != "prepare" and not os.path.isdir(prepared):
        subprocess.run([sys.executable, __file__, home, "prepare", str(present), "0"], check=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        if verb != "prepare":
            shutil.copytree(prepared, os.path.join(scratch, "home"))
        else:
            os.mkdir(os.path.join(scratch, "home"))
        runtime = os.path.join(scratch, "run")
        os.mkdir(runtime, 0o700)
        environment = {**os.environ, "HOME": os.path.join(scratch, "home"), "XDG_RUNTIME_DIR": runtime,
                       "KEYCHAIN_BENCHMARK_BUS": "1"}
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"):
            environment.pop(name, None)
        done = subprocess.run(["dbus-run-session", "--", sys.executable, __file__, *sys.argv[1:]], env=environment,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.stderr.buffer.write(done.stderr)
        elif verb == "prepare":
            os.rename(os.path.join(scratch, "home"), prepared)
        return done.returncode


def attributes(number):
    return {"service": "benchmark", "account": f"account-{number:06}"}


def main():
    verb, present, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    daemon = subprocess.Popen(["gnome-keyring-daemon", "--unlock", "--components=secrets", "--foreground"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    daemon.stdin.write(b"password")
    daemon.stdin.close()
    try:
        import secretstorage
        connection = secretstorage.dbus_init()
        for _ in range(100):
            if any(collection.get_label() == "Login" for collection in secretstorage.get_all_collections(connection)):
                break
            time.sleep(0.05)
        collection = next(c for c in secretstorage.get_all_collections(connection) if c.get_label() == "Login")
        secret = b"correct horse battery staple"
        times = []
        if verb == "prepare":
            for number in range(present):
                collection.create_item(f"item {number}", attributes(number), secret)
            return 0
        for number in range(count):
            if verb == "add":
                start = time.monotonic()
                collection.create_item(f"item {present + number}", attributes(present + number), secret)
            else:
                wanted = attributes(number * 7919 % present)
                start = time.monotonic()
                found = list(collection.search_items(wanted))
                if len(found) != 1 or found[0].get_secret() != secret:
                    raise SystemExit("the item is not there")
            times.append(time.monotonic() - start)
        print(statistics.median(times))
        return 0
    finally:
        daemon.terminate()
        daemon.wait(20)


if __name__ == "__main__":
    sys.exit(main() if os.environ.get("KEYCHAIN_BENCHMARK_BUS") else on_own_bus())
