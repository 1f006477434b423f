"""Tests ./dev setup with a dpkg-query that names the packages of this test as missing."""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUERY = """#!/bin/sh
for package; do :; done
case " $MISSING " in *" $package "*) exit 1 ;; *) printf installed ;; esac
"""


def setup(missing):
    with tempfile.TemporaryDirectory() as folder:
        query = pathlib.Path(folder) / "dpkg-query"
        query.write_text(QUERY)
        query.chmod(0o755)
        return subprocess.run(
            [ROOT / "dev", "setup"], capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "MISSING": missing})


class Setup(unittest.TestCase):
    def test_names_what_it_leaves_out_and_what_that_costs(self):
        done = setup("libopenmpi-dev libdnnl-dev")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out: libopenmpi-dev; without it ranks are threads", done.stdout)
        self.assertIn("left out: libdnnl-dev; without it dense products", done.stdout)
        self.assertNotIn("libeigen3-dev", done.stdout)

    def test_names_no_package_if_all_are_there(self):
        done = setup("")
        self.assertEqual(done.returncode, 0, done.stderr)
        for package in ("libopenmpi-dev", "libdnnl-dev", "libeigen3-dev", "python3-scipy"):
            self.assertNotIn(package, done.stdout)


if __name__ == "__main__":
    unittest.main()
