"""Programs that are killed while they write, and many of them on one cache: files are whole or absent."""

import json
import os
import signal
import subprocess
import time

from resources import expect_whole_files, sizes


def start(chaos, command):
    """Start a program without waiting for it."""
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env=chaos.environment)


def killed_while_writing(chaos):
    """Kill a run at a random time, then check its files, and run it again in the same folders."""
    folder, words = chaos.new_folder(), sizes(chaos)
    command = [chaos.program("sparse_fc_layer"), *words, "--output-dir", folder / "out", "--plan-cache",
               folder / "plans", "--json"]
    for _ in range(4):
        process = start(chaos, command)
        time.sleep(chaos.random.random() * 0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    again = chaos.run(command)
    chaos.expect_documented_end(again, (0, 4))
    expect_whole_files(chaos, folder, again)
    if again.code == 0:
        fresh = chaos.run([chaos.program("sparse_fc_layer"), *words, "--json"])
        chaos.expect(figures(again) == figures(fresh), "a cache that was killed gives another report", again)


def figures(outcome):
    """Return the parts of a report that do not depend on time and on the words of the command."""
    report = json.loads(outcome.out)
    return {key: report.get(key) for key in ("status", "plan", "buckets", "passes")}


def one_cache_for_many(chaos):
    """Run several programs at once on one cache: all agree with a run without a cache."""
    folder, words = chaos.new_folder(), sizes(chaos)
    command = [chaos.program("tessera"), "plan", *words[:10], "--json"]
    fresh = chaos.run(command)
    others = [start(chaos, [*command, "--plan-cache", folder / "plans"]) for _ in range(3)]
    shared = chaos.run([*command, "--plan-cache", folder / "plans"])
    codes = [process.wait() for process in others]
    chaos.expect(codes == [fresh.code] * 3, f"exit codes {codes} on one cache", shared)
    chaos.expect(shared.out == fresh.out, "a shared cache gives another plan", shared)
    left = [path.name for path in (folder / "plans").glob("*") if path.suffix != ".plan"]
    chaos.expect(not left, f"{left} stay in a cache", shared)


def interrupted(chaos):
    """End a run by Ctrl-C or by the signal of a scheduler: it stops soon, with the documented exit code."""
    kind = chaos.random.choice([signal.SIGINT, signal.SIGTERM])
    command = [chaos.program("sparse_fc_layer"), "--input-size", "3000", "--output-size", "3000", "--density", "0.2",
               "--batch-size", "256"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=chaos.environment)
    time.sleep(0.3 + chaos.random.random())
    process.send_signal(kind)
    sent = time.monotonic()
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    took = time.monotonic() - sent
    text = f"{kind.name} after {took:.1f} s: {' '.join(command)} exit code {process.returncode}"
    chaos.expect(process.returncode in (0, 130, 143, -kind), "an interrupted run has another exit code", text)
    chaos.expect(took < 20, "an interrupted run does not stop", text)


def run(chaos):
    """Kill, interrupt and race."""
    trials = [killed_while_writing, one_cache_for_many, interrupted]
    while chaos.goes_on():
        trials[chaos.trials % len(trials)](chaos)
