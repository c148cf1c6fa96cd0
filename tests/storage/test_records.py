"""Every event can be stored and read back as it was."""

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offload.domain import events
from offload.domain.errors import StorageFailed
from offload.domain.events import Created, Event, Stopped, TurnEvent
from offload.domain.turn import TurnId
from offload.storage import records
from tests.storage import strategies

EVENTS = st.sampled_from(sorted(records.KINDS.values(), key=lambda cls: cls.__name__)).flatmap(strategies.of)


def test_every_kind_of_event_has_a_record():
    """A new event must be storable on the day it is written."""
    written = {
        cls
        for cls in vars(events).values()
        if isinstance(cls, type) and issubclass(cls, Event) and cls not in (Event, TurnEvent)
    }
    assert set(records.KINDS.values()) == written


@pytest.mark.parametrize("kind", sorted(records.KINDS))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_an_event_comes_back_as_it_was(kind, data):
    event = data.draw(strategies.of(records.KINDS[kind]))
    name, body = records.encode(event)
    assert name == kind
    assert records.decode(name, body) == event


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(event=st.sampled_from([Created, Stopped]).flatmap(lambda cls: strategies.of(cls, st.text(max_size=5))))
def test_any_text_can_be_stored_even_with_lone_surrogates(event):
    """A program that cuts JSON inside an escape sends those; they must not cost anybody a task."""
    kind, body = records.encode(event)
    body.encode("utf-8")
    again = records.decode(kind, body)
    assert records.encode(again) == (kind, body)


def test_a_lone_surrogate_is_stored_as_the_replacement_character():
    body = records.encode(Stopped(at=1.0, turn=TurnId("t"), text="cut \ud83d here"))[1]
    assert records.decode("Stopped", body) == Stopped(at=1.0, turn=TurnId("t"), text="cut \ufffd here")


def test_a_field_that_an_older_version_did_not_write_takes_its_default():
    assert records.decode("Stopped", '{"at": 1.0, "turn": "t"}') == Stopped(at=1.0, turn=TurnId("t"))


def test_an_event_of_a_newer_version_is_refused_by_name():
    with pytest.raises(StorageFailed, match="'Teleported' of a newer version"):
        records.decode("Teleported", "{}")


@pytest.mark.parametrize("body", ["", "{", "[]", '{"at": 1}', '{"at": "soon", "turn": "t"}'])
def test_a_damaged_record_is_refused_with_the_reason(body):
    with pytest.raises(records.Unreadable, match=r"'Stopped' is damaged: ."):
        records.decode("Stopped", body)


@given(event=EVENTS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_a_record_names_every_field_of_its_event(event):
    """So that a later default cannot change what an old record means."""
    assert set(json.loads(records.encode(event)[1])) == {item.name for item in dataclasses.fields(event)}
