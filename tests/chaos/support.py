"""What the chaos scripts share: running a program within limits, findings, and files of arrays."""

import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import known_findings

MEMORY_LIMIT = 4 << 30  # bytes of address space of a program
TIME_LIMIT = 60  # seconds of a program


class Outcome:
    """What a program did: its exit code (negative: the signal that ended it), its output and its time."""

    def __init__(self, command, code, out, err, seconds):
        self.command, self.code, self.out, self.err, self.seconds = command, code, out, err, seconds

    def __str__(self):
        return f"{shlex.join(self.command)}\n  exit code {self.code} after {self.seconds:.1f} s\n  {self.err.strip()[-600:]}"


class Chaos:
    """One series of random trials: the programs, the random numbers, the time that is left, and the findings."""

    def __init__(self, programs, seed, seconds, most_trials=None):
        self.most_trials = most_trials
        self.programs, self.seed = pathlib.Path(programs).resolve(), seed
        self.random = random.Random(seed)
        self.end = time.monotonic() + seconds
        self.trials, self.findings, self.known = 0, [], 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-chaos-"))
        # Programs keep measured rates and caches in the home folder; trials get one of their own.
        self.environment = dict(os.environ, HOME=str(self.folder), XDG_CACHE_HOME=str(self.folder / "cache"))

    def goes_on(self):
        """Return True until the time or the number of trials is over; the first trial always runs."""
        if self.trials > 0 and (time.monotonic() >= self.end or self.trials == self.most_trials):
            return False
        self.trials += 1
        return True

    def close(self):
        """Delete the files of all trials."""
        for path in self.folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(self.folder, ignore_errors=True)

    def program(self, name):
        """Return the path of a program."""
        return str(self.programs / name)

    def new_folder(self):
        """Return the path of a new folder for the files of one trial."""
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def run(self, command, limits=None, stdout=subprocess.PIPE, **others):
        """Run a command within the limits of time and memory, and return its outcome."""
        bounds = {resource.RLIMIT_AS: MEMORY_LIMIT, resource.RLIMIT_CORE: 0, **(limits or {})}

        def limit():
            for kind, value in bounds.items():
                resource.setrlimit(kind, (value, value))

        command = [str(word) for word in command]
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                                   preexec_fn=limit, env=self.environment, **others)
        try:
            out, err = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += b"\nstopped after the limit of time"
        seconds = time.monotonic() - start
        return Outcome(command, process.returncode, (out or b"").decode(errors="replace"),
                       err.decode(errors="replace"), seconds)

    def find(self, what, outcome):
        """Report a finding, unless known_findings.py lists it."""
        text = f"{what}: {outcome}"
        if any(re.search(pattern, text, re.DOTALL) for pattern, _ in known_findings.KNOWN):
            self.known += 1
            return
        self.findings.append(text)
        print(f"FOUND {text}", flush=True)

    def expect(self, holds, what, outcome):
        """Report a finding unless the condition holds."""
        if not holds:
            self.find(what, outcome)

    def expect_documented_end(self, outcome, codes=(0, 2, 3, 4)):
        """Check what every run promises: its time, an exit code from the list, and a message that helps."""
        self.expect(outcome.seconds <= TIME_LIMIT, "a run takes more than a minute", outcome)
        self.expect(outcome.code >= 0, f"a signal ended a run ({signal_name(outcome.code)})", outcome)
        if outcome.code < 0:
            return
        self.expect(outcome.code in codes, "a run ended with an exit code that it should not have", outcome)
        if outcome.code not in (0, 1):
            self.expect_message(outcome)

    def expect_message(self, outcome):
        """Check that a message is there, of a usable length, and free of other libraries' words."""
        message = outcome.err
        self.expect(len(message.strip()) >= 20, "a failure has no message that says what, where and remedy", outcome)
        self.expect(not re.search(r"json\.exception|std::|terminate called|\d{60}", message),
                    "a message has words of a library or endless digits", outcome)
        self.expect(not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", message), "a message has control characters", outcome)


def signal_name(code):
    """Return the name of the signal in an exit code."""
    return signal.Signals(-code).name if code < 0 else ""


def write_npy(path, shape, values, kind="d"):
    """Write numbers as NumPy's .npy file; `kind` is the letter of the type as in the module struct."""
    descr = {"d": "<f8", "f": "<f4"}[kind]
    dims = "".join(f"{length}, " for length in shape)
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{kind}", *values)
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path):
    """Read a little-endian .npy file of floats; return its shape and its numbers."""
    data = pathlib.Path(path).read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} is no .npy file")
    (length,) = struct.unpack_from("<H", data, 8)
    header = data[10 : 10 + length].decode()
    shape = tuple(int(word) for word in re.search(r"\(([^)]*)\)", header).group(1).split(",") if word.strip())
    kind = {"<f8": "d", "<f4": "f", "<f2": "e"}[re.search(r"'descr': '([^']*)'", header).group(1)]
    count = 1
    for side in shape:
        count *= side
    if len(data) != 10 + length + count * struct.calcsize(kind):
        raise ValueError(f"{path} has {len(data)} bytes, which is not the length of its array")
    return shape, struct.unpack_from(f"<{count}{kind}", data, 10 + length)
