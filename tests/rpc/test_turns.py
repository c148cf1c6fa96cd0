"""What a front is told of one turn, and of a route that does not exist, in the answer of the call that waits."""

from dataclasses import replace

from tests.rpc.test_serve import house, wire

__all__ = ["house", "wire"]


async def test_a_turn_can_be_asked_for_by_its_id(wire):
    started = await wire.result("start_task", brief="::write a.txt one", wait_s=45)
    task_id, first = started["task_id"], started["turn_id"]
    followed = await wire.result("continue_task", task_id=task_id, brief="::write b.txt two", wait_s=45)
    assert followed["files_changed"] == 2
    own = await wire.result("get_task_status", task_id=task_id, turn_id=followed["turn_id"])
    assert (own["files_changed"], own["total_tokens"] * 2) == (1, followed["total_tokens"])
    assert (await wire.result("get_task_status", task_id=task_id, turn_id=first))["turn_id"] == first
    result = await wire.result("get_task_result", task_id=task_id, turn_id=followed["turn_id"])
    assert [file["path"] for file in result["changes"]["files"]] == ["b.txt"]
    whole = await wire.result("get_task_result", task_id=task_id)
    assert [file["path"] for file in whole["changes"]["files"]] == ["a.txt", "b.txt"]
    changes = await wire.result("get_changes", task_id=task_id, turn_id=first)
    assert [file["path"] for file in changes["changes"]["files"]] == ["a.txt"]


async def test_a_model_that_does_not_exist_is_told_in_the_answer_of_the_start(wire):
    answer = await wire.result("start_task", brief="::text hi", model="fake/worke", wait_s=45)
    assert (answer["state"], answer["failure"]["code"]) == ("failed", "unknown_model")
    assert "Near: fake/worker" in answer["failure"]["message"]


async def test_a_model_that_is_gone_is_told_in_the_answer_of_the_follow_up(wire, house):
    started = await wire.result("start_task", brief="::text hi", model="fake/other", wait_s=45)
    house.worker.info = replace(house.worker.info, models=house.worker.info.models[:1])
    answer = await wire.result("continue_task", task_id=started["task_id"], brief="::text more", wait_s=45)
    assert (answer["state"], answer["failure"]["code"]) == ("failed", "unknown_model")


async def test_limits_and_profile_come_with_the_start_and_are_shown(wire):
    started = await wire.result(
        "start_task", brief="::text hi", profile="read-only", max_cost=2, max_turns=3, wait_s=45
    )
    task = await wire.result("get_task", task_id=started["task_id"])
    assert (task["profile"], task["budget"]) == (
        "read-only",
        {"minutes": None, "turns": 3, "tokens": None, "cost": 2.0},
    )
    refused = await wire.ask("start_task", brief="::text hi", profile="no-network")
    assert refused["error"]["code"] == "unsupported_profile"
