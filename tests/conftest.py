"""What holds for every test: how busy the machine is says nothing about the code, so no property has a time limit per example."""

from hypothesis import settings

settings.register_profile("offload", deadline=None)
settings.load_profile("offload")
