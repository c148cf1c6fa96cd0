"""The parameters of every operation. A field's description is what models, editors and the command line show."""

from __future__ import annotations

import enum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from offload.domain.profile import Profile
from offload.domain.text import well_formed

MAX_WAIT_S = 45  # Hosts end a tool call after 60 s at the earliest known limit; a wait must be over well before.


class Params(BaseModel):
    """Base of all parameters: unknown names are refused, so that a typing error is told; so is what JSON cannot say."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _must_be_text(cls, value: object) -> object:
        """Lone surrogates are the bytes of an argument that is no UTF-8: no worker and no protocol could be told them."""
        if isinstance(value, str) and well_formed(value) != value:
            raise ValueError("it must be text in UTF-8")
        return value


TaskIdField = Annotated[str, Field(description="Id of the task, as start_task gave it; a unique beginning is enough.")]
WaitField = Annotated[
    float,
    Field(ge=0, le=MAX_WAIT_S, description=f"Seconds to wait for the end before answering, 0 to {MAX_WAIT_S}."),
]


TurnIdField = Annotated[
    str,
    Field(
        description="One turn, with its own usage and changes since it began; empty for the last turn and all changes."
    ),
]
KeyField = Annotated[
    str, Field(description="Idempotency key: the same call with the same key is done once and gets the same answer.")
]
NEW_LIMIT = "A new limit for the whole task, if it is to have one: see start_task."


class WaitMode(enum.StrEnum):
    ALL = "all"
    ANY = "any"


class ListAgentsParams(Params):
    worker: Annotated[str, Field(description='Only this worker ("opencode"); empty for all.')] = ""
    search: Annotated[str, Field(description="Only models whose id contains these words.")] = ""


class StartTaskParams(Params):
    brief: Annotated[str, Field(description="What is to be done, in plain words.")] = ""
    file: Annotated[str, Field(description="File that the task is about; absolute, or relative to the workspace.")] = ""
    symbol: Annotated[str, Field(description='Block in that file by name ("Cart.total"); give symbol or lines.')] = ""
    lines: Annotated[str, Field(description='Lines of that file, 1-based, both included ("10-42").')] = ""
    workspace: Annotated[
        str, Field(description="Folder of the project; empty for the one in which this server or command was started.")
    ] = ""
    recipe: Annotated[str, Field(description='Kind of task: "instruction" (the brief alone), "tests" or "docs".')] = (
        "instruction"
    )
    worker: Annotated[str, Field(description="Worker to use; empty for the default. See list_agents.")] = ""
    agent: Annotated[str, Field(description="The worker's own agent; empty for its default.")] = ""
    model: Annotated[str, Field(description="Model as PROVIDER/MODEL; empty for the worker's default.")] = ""
    variant: Annotated[str, Field(description='Variant of the model ("high"); empty for its default.')] = ""
    profile: Annotated[
        Profile | None,
        Field(
            description="What the worker may do; the setting's unless given. list_agents names those that it can enforce."
        ),
    ] = None
    max_minutes: Annotated[
        float | None, Field(gt=0, description="Minutes of work of the whole task; the setting's unless given.")
    ] = None
    max_turns: Annotated[
        int | None, Field(ge=1, description="Turns of the whole task; the setting's unless given.")
    ] = None
    max_tokens: Annotated[
        int | None, Field(ge=1, description="Tokens of the whole task; the setting's unless given.")
    ] = None
    max_cost: Annotated[
        float | None,
        Field(ge=0, description="US dollars for the whole task; an unknown price is 0; the setting's unless given."),
    ] = None
    allowed_paths: Annotated[
        list[str],
        Field(
            description='Files that the task may change, as patterns ("tests", "docs/*.md"); changes outside of them are listed '
            "apart and only applied when asked for. Empty: the recipe's, else all."
        ),
    ] = Field(default_factory=list)
    after: Annotated[
        list[str],
        Field(description="Ids of tasks to wait for: this one begins from their merged results."),
    ] = Field(default_factory=list)
    key: Annotated[str, Field(description="Idempotency key: a start with the same key gives the same task.")] = ""
    wait_s: WaitField = 0


class ContinueTaskParams(Params):
    task_id: TaskIdField
    brief: Annotated[
        str, Field(description="The follow-up; the worker remembers the task. May be empty together with onto.")
    ] = ""
    onto: Annotated[
        str,
        Field(
            description="Bring the task's folder up to date first: \"files\" for the user's files as they are now, or the id of "
            "a task (an integration) for its result. What does not go together is marked in the files, to be resolved."
        ),
    ] = ""
    max_minutes: Annotated[float | None, Field(gt=0, description=NEW_LIMIT)] = None
    max_turns: Annotated[int | None, Field(ge=1, description=NEW_LIMIT)] = None
    max_tokens: Annotated[int | None, Field(ge=1, description=NEW_LIMIT)] = None
    max_cost: Annotated[float | None, Field(ge=0, description=NEW_LIMIT)] = None
    key: KeyField = ""
    wait_s: WaitField = 0


class ResumeTaskParams(Params):
    task_id: TaskIdField
    wait_s: WaitField = 0


class TaskParams(Params):
    task_id: TaskIdField


class AnswerTaskParams(Params):
    task_id: TaskIdField
    ask_id: Annotated[str, Field(description="Id of the open ask; may be empty when only one is open.")] = ""
    choice: Annotated[
        str,
        Field(
            min_length=1,
            description='One of the choices: "allow", "always" (allow the very same again in this task), "deny", or a label.',
        ),
    ]
    message: Annotated[str, Field(description="Words for the worker, with a denial.")] = ""
    key: KeyField = ""


class GetTaskStatusParams(Params):
    task_id: TaskIdField
    turn_id: TurnIdField = ""


class GetTaskResultParams(Params):
    task_id: TaskIdField
    turn_id: TurnIdField = ""
    text_offset: Annotated[int, Field(ge=0, description="Character of the worker's text to begin with.")] = 0


class WaitForTasksParams(Params):
    task_ids: Annotated[list[str], Field(min_length=1, max_length=100, description="Ids of the tasks to wait for.")]
    mode: Annotated[WaitMode, Field(description='"all": until every task rests; "any": until one does.')] = WaitMode.ALL
    timeout_s: Annotated[
        float, Field(ge=0, le=MAX_WAIT_S, description=f"Seconds to wait at most, 0 to {MAX_WAIT_S}.")
    ] = 30
    after_revision: Annotated[
        dict[str, int] | None,
        Field(description="Revision last seen per task id: answer as soon as one of these tasks has a later one."),
    ] = None
    include_progress: Annotated[bool, Field(description="Include what the workers are doing and saying.")] = True


class ListTasksParams(Params):
    workspace: Annotated[str, Field(description="Only tasks of this folder; empty for all.")] = ""
    live: Annotated[bool, Field(description="Only tasks that are not over.")] = False
    closed: Annotated[bool, Field(description="Closed tasks too.")] = False
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many, newest first.")] = 100


PathsField = Annotated[list[str], Field(description="Only these files.")]
HunksField = Annotated[
    list[str], Field(description="Only these hunks: ids of hunks, or of files, as get_changes gives them.")
]


class GetChangesParams(Params):
    task_id: TaskIdField
    turn_id: TurnIdField = ""
    paths: PathsField = Field(default_factory=list)
    hunks: HunksField = Field(default_factory=list)
    patch_offset: Annotated[int, Field(ge=0, description="Character of the patch to begin with.")] = 0


class ApplyTaskParams(Params):
    """Without paths and hunks: all that is neither applied nor rejected yet, and in the task's allowed paths."""

    task_id: TaskIdField
    paths: PathsField = Field(default_factory=list)
    hunks: HunksField = Field(default_factory=list)
    include_outside: Annotated[bool, Field(description="Also files outside of the task's allowed paths.")] = False
    key: KeyField = ""


class RejectTaskParams(Params):
    """Without paths and hunks: all that is not applied."""

    task_id: TaskIdField
    paths: PathsField = Field(default_factory=list)
    hunks: HunksField = Field(default_factory=list)
    reason: Annotated[str, Field(description="Why; the worker is told it when it is sent back.")] = ""
    send_back: Annotated[bool, Field(description="Send what is rejected back to the worker as a follow-up.")] = False


class UndoApplyParams(Params):
    task_id: TaskIdField
    apply_id: Annotated[str, Field(description="Which apply, as apply_task gave it; empty for the last one.")] = ""


class IntegrateTasksParams(Params):
    task_ids: Annotated[
        list[str], Field(min_length=1, max_length=50, description="Ids of tasks that are over, of one workspace.")
    ]
    key: KeyField = ""
    wait_s: WaitField = 0


class RunChecksParams(Params):
    task_id: TaskIdField
    wait_s: WaitField = 0


class TrustWorkspaceParams(Params):
    workspace: Annotated[
        str, Field(description="Folder of the project; empty for the one in which this was started.")
    ] = ""
    trusted: Annotated[bool, Field(description="False to take the trust back.")] = True


class CleanTasksParams(Params):
    task_ids: Annotated[
        list[str], Field(description="Only these tasks, whatever their age; empty for all that are old enough.")
    ] = Field(default_factory=list)
    older_than_days: Annotated[
        float | None,
        Field(
            ge=0,
            description="Only tasks that have not changed for so many days; those of the setting keep_days unless given.",
        ),
    ] = None
    include_unaccepted: Annotated[
        bool, Field(description="Remove named tasks although their changes were never applied.")
    ] = False
    dry_run: Annotated[bool, Field(description="Only list what would be removed.")] = False
