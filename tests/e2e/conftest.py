"""One hub and one OpenCode server for the whole folder; what a test must kill or set gets a stage of its own."""

from pathlib import Path

import pytest

from tests.e2e.stage import BOUND_S, Stage
from tests.fakes import model as fake_model


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.opencode)
            item.add_marker(pytest.mark.timeout(2 * BOUND_S))  # so that the wait itself says what did not come


@pytest.fixture(scope="session")
def model():
    with fake_model.running() as model:
        yield model


@pytest.fixture(scope="session")
def stage(model):
    stage = Stage(model)
    yield stage
    stage.close()


@pytest.fixture
def project(stage):
    return stage.project()
