"""What holds for every test: how busy the machine is says nothing about the code, so no property has a time limit per example;
and a program can be interrupted, though a script that runs the tests in its background has told them to ignore that."""

import signal

from hypothesis import settings

settings.register_profile("offload", deadline=None)
settings.load_profile("offload")

# Programs that a test starts inherit what is ignored, but no handler.
signal.signal(signal.SIGINT, signal.default_int_handler)
