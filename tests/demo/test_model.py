"""The endpoint: OpenAI's wire format over a real loopback socket."""

import json
import socket
import threading

import httpx
import pytest

from offload.demo import model

TOOLS = [{"type": "function", "function": {"name": "read"}}]
MESSAGES = [{"role": "user", "content": "Write tests for shop/money.py"}]
REQUEST = {"model": "demo", "tools": TOOLS, "messages": MESSAGES}


@pytest.fixture(scope="module")
def client():
    with model.scripted_model(pace_s=0) as url, httpx.Client(base_url=url, trust_env=False) as client:
        yield client


def streamed(client, body):
    with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as response:
        assert response.headers["content-type"] == "text/event-stream"
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert events[-1] == "[DONE]"
    return [json.loads(event) for event in events[:-1]]


def test_a_tool_call_is_streamed_in_small_pieces_that_make_it_whole(client):
    events = streamed(client, REQUEST)
    deltas = [event["choices"][0]["delta"] for event in events]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    arguments = "".join(call["function"].get("arguments", "") for call in calls)
    assert (calls[0]["id"][:5], calls[0]["function"]["name"]) == ("call_", "read")
    assert json.loads(arguments) == {"filePath": "shop/money.py"}
    assert len(calls) > 2
    assert "".join(delta.get("content") or "" for delta in deltas) == "I read shop/money.py first."
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_the_last_event_reports_usage(client):
    usage = streamed(client, REQUEST)[-1]["usage"]
    assert usage["prompt_tokens"] > 20
    assert usage["completion_tokens"] > 10
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_a_request_without_tools_is_answered_with_a_title(client):
    """OpenCode asks its small model for a session's title this way."""
    events = streamed(client, {"model": "demo", "messages": MESSAGES})
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events)
    assert text == "Tests for a block"
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("body", "key", "reason"),
    [(REQUEST, "tool_calls", "tool_calls"), ({"messages": MESSAGES}, "content", "stop")],
)
def test_an_answer_can_be_had_whole(client, body, key, reason):
    answer = client.post("/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"][key]
    assert answer["choices"][0]["finish_reason"] == reason


def test_the_model_is_listed(client):
    assert [entry["id"] for entry in client.get("/v1/models").json()["data"]] == ["demo"]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"{}", b'{"tools": [1], "messages": []}', b'{"tools": [1], "messages": [{}]}']
)
def test_what_is_no_request_is_told(client, body):
    answer = client.post("/v1/chat/completions", content=body)
    if body == b"{}":
        assert answer.status_code == 200, "without tools anything is a request for a title"
    else:
        assert answer.status_code == 400
        assert "not a chat completions request" in answer.json()["error"]["message"]


def test_another_path_is_not_served(client):
    assert client.post("/v1/responses", json=REQUEST).status_code == 404


def test_an_agent_that_hangs_up_in_the_middle_harms_nobody():
    before = set(threading.enumerate())
    with model.scripted_model(pace_s=0.001) as url:
        host, port = url.removeprefix("http://").split(":")
        body = json.dumps(
            {**REQUEST, "stream": True, "messages": [{"role": "user", "content": "Write " + "a" * 20000 + ".py"}]}
        )
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert httpx.get(f"{url}/v1/models", trust_env=False).status_code == 200
    assert not [thread.name for thread in set(threading.enumerate()) - before if thread.name == "scripted-model"]


def test_the_configuration_names_no_other_provider():
    config = model.opencode_config("http://127.0.0.1:1")
    assert config["enabled_providers"] == list(config["provider"]) == ["scripted"]
    assert config["model"] == config["small_model"] == "scripted/demo"
    assert config["provider"]["scripted"]["options"]["baseURL"] == "http://127.0.0.1:1/v1"
