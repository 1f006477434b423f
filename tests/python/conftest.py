"""The same examples in every run, and no files beside the tests."""

from hypothesis import settings

settings.register_profile("tessera", derandomize=True, database=None, deadline=None)
settings.load_profile("tessera")
