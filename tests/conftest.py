"""What all tests share."""

from hypothesis import settings

# The first example of a test may compile a kernel, and the machine may be busy: time is no verdict.
settings.register_profile("keisei", deadline=None)
settings.load_profile("keisei")
