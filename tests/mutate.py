#!/usr/bin/env python3
"""Changes one line of a folder's sources at random, again and again, and lists the changes that no test notices.

Usage: mutate.py FOLDER COUNT [--seed SEED] [--build DIR] [--tree DIR] [--bar PERCENT]

The sources are copied to DIR/tree, so the checkout itself is never changed. A change that does not compile is drawn
again. A change is caught if a test of the folder fails, crashes or takes much longer than without it. Tests run from the
shortest to the longest, so that most changes are caught soon. The same seed draws the same changes from the same
sources. Statements that are only hints (reserve, prefetch, static_assert) are not changed, and assertions are not
dropped: no test could see either.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The code of a line is searched for these, and one match is replaced. clang-format writes blanks around binary
# operators, which tells a comparison from a list of template arguments.
REPLACEMENTS = [
    ("comparison", r" < ", [" <= ", " > "]),
    ("comparison", r" > ", [" >= ", " < "]),
    ("comparison", r" <= ", [" < "]),
    ("comparison", r" >= ", [" > "]),
    ("comparison", r" == ", [" != "]),
    ("comparison", r" != ", [" == "]),
    ("off by one", r" [+-] 1\b(?![.'])", [""]),
    ("operator", r" \+ ", [" - "]),
    ("operator", r" - ", [" + "]),
    ("operator", r" \* ", [" + "]),
    ("operator", r" / ", [" * "]),
    ("operator", r" % ", [" / "]),
    ("operator", r" \+= ", [" -= ", " = "]),
    ("operator", r" -= ", [" += "]),
    ("operator", r" && ", [" || "]),
    ("operator", r" \|\| ", [" && "]),
    ("operator", r"\bstd::min\b", ["std::max"]),
    ("operator", r"\bstd::max\b", ["std::min"]),
    ("constant", r"\btrue\b", ["false"]),
    ("constant", r"\bfalse\b", ["true"]),
    ("constant", r"(?<![\w.'])(?<!\de[+-])\d+(?![\w.'])", ["plus one", "minus one"]),
]
STATEMENT = re.compile(r"^\s+[\w:.>\[\]()*-]+( [+*/%|&-]?= .*|\(.*\));$")
NOT_CODE = re.compile(r"^\s*(//|#|using |namespace |template|return;|break;)")
# Memory that is reserved or fetched ahead changes no result: growth and reading give it later.
HINT = re.compile(r"\breserve\(|[pP]refetch\w*\(|\bfetch_row\(|\bstatic_assert\(")
RAW_TEXT = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)


def code_of(line):
    """Return the line with text literals and comments replaced by blanks, so that positions stay the same."""
    blank = lambda match: " " * len(match.group())
    line = re.sub(r'"(\\.|[^"\\])*"' + r"|'(\\.|[^'\\])'", blank, line)
    return re.sub(r"//.*", blank, line)


def changes_of(line, previous):
    """Return all changes of a line as pairs of a kind and the new line; `previous` is the line before it."""
    code = code_of(line)
    if NOT_CODE.match(line) or HINT.search(code):
        return []
    found = []
    for kind, pattern, replacements in REPLACEMENTS:
        for match in re.finditer(pattern, code):
            for text in replacements:
                if text == "plus one":
                    text = str(int(match.group()) + 1)
                elif text == "minus one":
                    text = str(max(int(match.group()) - 1, -1))
                found.append((kind, line[: match.start()] + text + line[match.end() :]))
    is_assertion = "TESSERA_ASSERT(" in code
    if not is_assertion and STATEMENT.match(code.rstrip()) and code_of(previous).rstrip().endswith((";", "{", "}", ":")):
        found.append(("dropped statement", re.sub(r"\S.*", ";", line, count=1)))
    return [(kind, text) for kind, text in found if text != line]


def lines_of_text(lines):
    """Return the numbers, from 0, of the lines that share a text literal of several lines, for example a table."""
    text = "\n".join(lines)
    found = set()
    for match in RAW_TEXT.finditer(text):
        first, more = text.count("\n", 0, match.start()), match.group().count("\n")
        found.update(range(first, first + more + 1) if more else [])
    return found


def lines_of_hints(lines):
    """Return the numbers, from 0, of the lines of statements that are only hints; the first names it."""
    found, inside = set(), False
    for at, code in enumerate(map(code_of, lines)):
        inside = inside or bool(HINT.search(code))
        if inside:
            found.add(at)
        inside = inside and not code.rstrip().endswith((";", "{", "}"))
    return found


def places_of(lines):
    """Return the numbers, from 0, of the lines that have a change."""
    left_out = lines_of_text(lines) | lines_of_hints(lines)
    return [at for at, line in enumerate(lines) if at not in left_out and changes_of(line, lines[at - 1] if at else "")]


def draw(random_numbers, files):
    """Draw a file, a line and a change; every line with a change is as likely as any other."""
    places = [(path, at) for path, lines in files.items() for at in places_of(lines)]
    if not places:
        sys.exit("mutate: the folder has no line to change")
    path, at = random_numbers.choice(places)
    lines = files[path]
    kind, text = random_numbers.choice(changes_of(lines[at], lines[at - 1] if at else ""))
    return path, at, kind, text


# Folders of tests that look at a folder of sources beside its own.
MORE_TESTS = {"host": ["layers"], "planner": ["layers"], "runtime": ["layers"]}


def test_programs(tree, folder):
    """Return the paths inside the build of all programs that test a folder; their names are those of the targets."""
    programs = []
    for tests in [folder, *MORE_TESTS.get(folder, [])]:
        lists = tree / "tests" / tests / "CMakeLists.txt"
        names = re.findall(r"^tessera_tests\((\w+)", lists.read_text(), re.MULTILINE) if lists.is_file() else []
        if not names:
            sys.exit(f"mutate: tests/{tests} has no tests; name a folder of sources that has some")
        programs += [pathlib.Path("tests") / tests / f"{name}_tests" for name in names]
    return programs


def copy_sources(tree):
    """Copy all files that git knows or would add to `tree`, and delete the files there that are gone.

    A file with the same contents keeps its time, so nothing is built again without need; another one gets the time of
    now, so that what an interrupted run built of a changed file is built again.
    """
    listing = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"],
                             cwd=ROOT, check=True, capture_output=True).stdout.decode()
    names = {name for name in listing.split("\0") if name and (ROOT / name).is_file()}
    for path in [path for path in tree.rglob("*") if path.is_file() and str(path.relative_to(tree)) not in names]:
        path.unlink()
    for name in names:
        source, target = ROOT / name, tree / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def tests_by_time(results):
    """Return the names of the tests that ran, the shortest first, in lists of tests that take about as long.

    The place in the result says how long: up to 20 ms, 80 ms, 320 ms and so on; a list may be empty.
    """
    by_time = []
    for suite in results["testsuites"]:
        for test in suite["testsuite"]:
            step = 0
            while float(test["time"].rstrip("s")) > 0.02 * 4**step:
                step += 1
            by_time += [[] for _ in range(step + 1 - len(by_time))]
            by_time[step].append(f"{suite['name']}.{test['name']}")
    return by_time


class Trial:
    """A copy of the tree with a build, in which one change at a time is tried."""

    def __init__(self, work, folder, jobs, tree=None):
        """Copy and configure the tree in `work`; or take the copy `tree`, which is configured in `work`."""
        self.tree, self.build, self.jobs = (tree, work, jobs) if tree else (work / "tree", work / "build", jobs)
        if not tree:
            self.make()
        self.programs = test_programs(self.tree, folder)
        if not self.compiles(show=True):
            sys.exit("mutate: the sources do not compile without a change")
        self.steps = []  # of a program and a filter that selects some of its tests
        start = time.monotonic()
        times = self.build / "mutate_times.json"
        for program in self.programs:
            if not self.runs(program, f"--gtest_output=json:{times}", 600):
                sys.exit(f"mutate: {program} fails without a change")
            for step, tests in enumerate(tests_by_time(json.loads(times.read_text()))):
                if tests:
                    self.steps.append((step, program, "--gtest_filter=" + ":".join(tests)))
        self.steps.sort(key=lambda step: step[0])
        self.limit = 30 + 5 * (time.monotonic() - start)

    def make(self):
        """Copy the sources and configure a build that compiles fast and keeps the checks of the tests.

        An index outside of a list ends the test: it is undefined, and AddressSanitizer sees most of them.
        """
        copy_sources(self.tree)
        configure = ["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                     "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -D_GLIBCXX_ASSERTIONS", "-DCMAKE_CXX_FLAGS=",
                     "-DTESSERA_HTML=OFF"]
        if shutil.which("ccache"):
            configure.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)

    def compiles(self, show=False):
        """Build the test programs; return False if that fails."""
        output = None if show else subprocess.DEVNULL
        targets = [program.name for program in self.programs]
        return subprocess.run(["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *targets],
                              stdout=subprocess.DEVNULL, stderr=output).returncode == 0

    def runs(self, program, argument, limit):
        """Run tests; return False if one fails or crashes, or if they take longer than `limit` seconds."""
        try:
            command = [self.build / program, "--gtest_fail_fast", "--gtest_brief=1", argument]
            # The data beside the checkout are not beside its copy.
            environment = {"TESSERA_SHARED": str(ROOT.parent / "shared"), **os.environ}
            return subprocess.run(command, cwd=self.build, env=environment, timeout=limit, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def passes(self):
        """Run all tests, the short ones first."""
        return all(self.runs(program, tests, self.limit) for _, program, tests in self.steps)

    def outcome(self, path, at, text, lines):
        """Try one change; return "caught", "survived" or "does not compile"."""
        changed = lines[:at] + [text] + lines[at + 1 :]
        path.write_text("\n".join(changed) + "\n")
        try:
            if not self.compiles():
                return "does not compile"
            return "survived" if self.passes() else "caught"
        finally:
            path.write_text("\n".join(lines) + "\n")


def sources_of(tree, folder):
    """Return the lines of every source of a folder by path; folders below it that have tests are not part of it."""
    others = [path.parent.relative_to(tree / "tests") for path in (tree / "tests" / folder).glob("*/CMakeLists.txt")]
    files = {}
    for path in sorted((tree / folder).rglob("*")):
        inside = not any((tree / other) in path.parents for other in others)
        if path.suffix in (".cpp", ".hpp") and inside:
            files[path] = path.read_text().splitlines()
    return files


def main():
    """Draw, try and report the changes that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a folder of sources, for example planner")
    parser.add_argument("count", type=int, help="the number of changes that compile")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "mutate")
    parser.add_argument("--tree", type=pathlib.Path, default=None,
                        help="change the sources of this copy of the checkout, whose build is that of --build")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--bar", type=float, default=0, help="exit with 1 if a smaller share, in percent, is caught")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"folder {arguments.folder}, {arguments.count} changes, seed {seed}", flush=True)
    random_numbers = random.Random(seed)
    trial = Trial(arguments.build.resolve(), arguments.folder, arguments.jobs, arguments.tree)
    files = sources_of(trial.tree, arguments.folder)
    tried, survivors = 0, []
    while tried < arguments.count:
        path, at, kind, text = draw(random_numbers, files)
        outcome = trial.outcome(path, at, text, files[path])
        if outcome == "does not compile":
            continue
        tried += 1
        line = f"{path.relative_to(trial.tree)}:{at + 1}: {kind}: {files[path][at].strip()}  ->  {text.strip()}"
        print(f"{outcome:8} {line}", flush=True)
        if outcome == "survived":
            survivors.append(line)
    share = 100 * (tried - len(survivors)) / max(tried, 1)
    print(f"caught {tried - len(survivors)} of {tried} ({share:.0f} %), seed {seed}")
    return 1 if share < arguments.bar else 0


if __name__ == "__main__":
    sys.exit(main())
