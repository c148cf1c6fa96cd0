"""A start whose answer never came to its editor is not done twice."""

HELD = {"brief": "::gate hold\n::text ok", "wait_s": 45}


async def test_a_start_whose_editor_went_away_is_met_again(house, connect):
    editor = await connect()
    editor.start("offload/startTask", HELD)
    await house.worker.gate("hold").reached.wait()
    (first,) = house.delegation.tasks()
    await editor.disconnect()
    await editor.served
    again = await connect(name="lsp-2")
    started = await again.result("offload/startTask", {**HELD, "wait_s": 0})
    assert started["task_id"] == first.id
    other = await again.result("offload/startTask", {**HELD, "wait_s": 0})
    assert other["task_id"] != first.id
    house.worker.gate("hold").open()
