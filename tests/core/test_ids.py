"""Ids: what they are made of, and their order."""

import re

from offload.core.ids import new_task_id, new_turn_id


def test_a_task_id_can_be_typed_and_is_never_taken_for_an_option():
    ids = {new_task_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(re.fullmatch("[a-z][a-z0-9]{7}", each) for each in ids)


def test_turn_ids_sort_by_time_and_no_two_are_alike():
    ids = [new_turn_id(now) for now in (1000.0, 1000.5, 1001.0) for _ in range(3)]
    assert [each[:14] for each in ids] == sorted(each[:14] for each in ids)
    assert len({each[:14] for each in ids}) == 3
    assert len({each[:17] for each in ids}) == len(set(ids)) == len(ids)
    assert all(re.fullmatch("turn_[0-9a-f]{12}[0-9A-Za-z]{14}", each) for each in ids)


def test_the_time_in_a_turn_id_can_be_read_back():
    stamp = int(new_turn_id(1234.567)[5:17], 16)
    assert stamp // 4096 == 1234567
