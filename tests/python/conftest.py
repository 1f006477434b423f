"""The same examples in every run, and no files beside the tests or in the user's folder."""

import os
from pathlib import Path

from hypothesis import settings

# Rates of this computer, which a sanitized build measures too, go to the folder of the tests.
if build := os.environ.get("TESSERA_BUILD"):
    os.environ["XDG_CACHE_HOME"] = str(Path(build, "tests", "cache"))
settings.register_profile("tessera", derandomize=True, database=None, deadline=None)
settings.load_profile("tessera")
