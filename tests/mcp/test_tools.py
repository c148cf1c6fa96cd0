"""The tool list: what hosts and models' interfaces are known to accept (measured with three hosts)."""

import re

import pytest

from offload.domain.task import Front
from offload.mcp.tools import OPERATIONS_FOR_MODELS, TOOLS
from offload.wire.operations import OPERATIONS

by_name = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def walk(node):
    yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(child)


def test_the_tools_are_the_operations_for_models():
    assert [tool.name for tool in TOOLS] == [each.name for each in OPERATIONS if Front.MODEL in each.fronts]
    assert {tool.name for tool in TOOLS} == {
        "list_agents",
        "start_task",
        "continue_task",
        "resume_task",
        "cancel_task",
        "answer_task",
        "get_task_status",
        "get_task_result",
        "wait_for_tasks",
        "list_tasks",
        "get_changes",
        "apply_task",
        "reject_task",
        "undo_apply",
        "integrate_tasks",
        "run_checks",
    }


@by_name
def test_a_name_fits_every_model_interface(tool):
    """64 characters of [a-zA-Z0-9_-], the host's prefix included."""
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,29}", tool.name)


@by_name
def test_both_schemas_are_objects_without_a_choice_at_the_top(tool):
    """One host loses the whole list over one schema without `type: object`; some interfaces refuse `anyOf` at the top."""
    for schema in (tool.input_schema, tool.output_schema):
        assert schema["type"] == "object"
        assert schema["properties"]
        assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$ref", "$defs"} & set(schema)


@by_name
def test_every_definition_stands_where_it_is_used(tool):
    for schema in (tool.input_schema, tool.output_schema):
        assert not [node for node in walk(schema) if isinstance(node, dict) and {"$ref", "$defs"} & set(node)]


@by_name
def test_parameters_offer_no_choice_of_types_and_no_null_default(tool):
    for node in walk(tool.input_schema):
        if isinstance(node, dict):
            assert not {"anyOf", "oneOf", "allOf"} & set(node)
            assert node.get("default", "") is not None


@by_name
def test_every_parameter_says_what_it_means_and_its_limits(tool):
    """A host may drop limits from the schema, so the description has them too."""
    for name, schema in tool.input_schema["properties"].items():
        assert len(schema.get("description", "")) > 10, name
        if "maximum" in schema and name != "limit":
            assert str(schema["maximum"]) in schema["description"], name


def test_fields_that_are_called_title_are_kept_and_other_titles_are_not():
    schema = next(tool.output_schema for tool in TOOLS if tool.name == "start_task")
    assert schema["properties"]["title"] == {"type": "string"}
    assert not [node for node in walk(schema) if isinstance(node, dict) and isinstance(node.get("title"), str)]


@by_name
def test_the_annotations_say_what_only_reads(tool):
    assert tool.annotations.read_only_hint is OPERATIONS_FOR_MODELS[tool.name].reads_only
    assert tool.annotations.destructive_hint is (tool.name in {"apply_task", "undo_apply"})


def test_the_whole_list_is_small():
    """It stands in a model's context all day."""
    assert sum(len(tool.model_dump_json(exclude={"output_schema"}, exclude_none=True)) for tool in TOOLS) < 15_000
