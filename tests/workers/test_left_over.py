"""What a killed hub left running is ended by the next one, and nobody else is."""

import json
import subprocess
import sys

import psutil
import pytest

from offload.workers.left_over import end_left_over


@pytest.fixture
def server_file(tmp_path):
    file = tmp_path / "opencode/servers/key/server.json"
    file.parent.mkdir(parents=True)
    return file


@pytest.fixture
def process():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield psutil.Process(process.pid)
    process.kill()
    process.communicate()


async def test_a_server_of_an_earlier_hub_is_ended_and_forgotten(tmp_path, server_file, process):
    server_file.write_text(json.dumps({"pid": process.pid, "started": process.create_time()}))
    await end_left_over(tmp_path)
    assert process.status() == psutil.STATUS_ZOMBIE
    assert not server_file.exists()


async def test_who_has_the_number_now_is_left_alone(tmp_path, server_file, process):
    server_file.write_text(json.dumps({"pid": process.pid, "started": 1.0}))
    await end_left_over(tmp_path)
    assert process.status() != psutil.STATUS_ZOMBIE
    assert not server_file.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"pid": 1}'])
async def test_a_file_that_makes_no_sense_stops_nothing(tmp_path, server_file, text):
    server_file.write_text(text)
    await end_left_over(tmp_path)
    assert server_file.read_text() == text


async def test_without_a_folder_there_is_nothing_to_end(tmp_path):
    await end_left_over(tmp_path / "none")
    assert not (tmp_path / "none").exists()
