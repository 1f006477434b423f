"""The same examples in every run of the tests of a build, and no files beside them or in the user's folder."""

import os
from pathlib import Path

from hypothesis import settings

# A build keeps the rates of this computer in its own folder. One with a sanitizer measures none,
# which would take minutes: without a folder for them it takes the default rates.
build = os.environ.get("TESSERA_BUILD")
if "TESSERA_SANITIZED" in os.environ:
    os.environ.update(XDG_CACHE_HOME="", HOME="")
elif build:
    os.environ["XDG_CACHE_HOME"] = str(Path(build, "tests", "cache"))
settings.register_profile("tessera", derandomize=True, database=None, deadline=None)
settings.load_profile("tessera")
