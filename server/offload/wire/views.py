"""The results that go over the wire. Field names are the same in Python, TypeScript, Lua and JSON; times are seconds since
the epoch, lines are 1-based, paths are relative to the task's workspace with "/"."""

from __future__ import annotations

import enum

from pydantic import BaseModel, ConfigDict, Field, field_validator

from offload.domain.ask import AskKind, AskOutcome
from offload.domain.change import FileStatus
from offload.domain.check import Checked
from offload.domain.profile import Profile
from offload.domain.review import ReviewState
from offload.domain.task import Front, Phase, Place
from offload.domain.text import well_formed
from offload.domain.turn import ActivityKind


class View(BaseModel):
    """Base of all that goes over the wire. Its texts are well-formed, so that every edge can write them as UTF-8. Each is built
    when it is first used: all of them together would keep the first front waiting."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _well_formed(cls, value: object) -> object:
        if isinstance(value, str):
            return well_formed(value)
        if isinstance(value, list):
            return [well_formed(item) if isinstance(item, str) else item for item in value]
        return value


class TaskState(enum.StrEnum):
    """Where a task stands, in the words that MCP clients know."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RouteView(View):
    """Who works: worker, its agent, the model as PROVIDER/MODEL, the model's variant; "" where it is left to the default."""

    worker: str
    agent: str = ""
    model: str = ""
    variant: str = ""


class UsageView(View):
    """Tokens by kind and the cost in US dollars; null when the price is unknown."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int
    cost: float | None


class ActivityView(View):
    """What the worker is doing now; `label` is plain English ("running the test suite")."""

    kind: ActivityKind
    label: str
    tool: str = ""
    until: float | None = None
    since: float | None = None


class AskView(View):
    """An open permission request or question; answer it with answer_task."""

    ask_id: str
    kind: AskKind
    subject: str
    detail: str
    choices: list[str]


class ClosedAskView(View):
    """An ask that is over: `by` names who answered, "" when nobody did."""

    ask_id: str
    kind: AskKind
    subject: str
    detail: str
    outcome: AskOutcome
    choice: str
    by: str
    at: float


class BudgetView(View):
    """Limits of the whole task, null for none. `minutes` are minutes of work."""

    minutes: float | None = None
    turns: int | None = None
    tokens: int | None = None
    cost: float | None = None


class AnchorView(View):
    """The block that a task is about, where it was at the start."""

    path: str
    symbol: str
    kind: str
    first_line: int
    last_line: int


class HunkView(View):
    """`hunk_id` stays the same while other parts of the file change."""

    hunk_id: str
    state: ReviewState
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


class FileChangeView(View):
    """`file_id` names the file where its path is no text; `old_path` is where a renamed one was. `outside` says that the task
    was not allowed to change it: it is applied only when asked for. `state` is that of all its hunks together, "pending"
    while one is; `hunks_left_out` counts those that did not fit into a short result."""

    path: str
    file_id: str
    status: FileStatus
    state: ReviewState
    outside: bool = False
    old_path: str = ""
    old_mode: str = ""
    new_mode: str = ""
    size: int | None = None
    added_lines: int
    removed_lines: int
    binary: bool = False
    hunks: list[HunkView] = Field(default_factory=list)
    hunks_left_out: int = 0


class ChangesView(View):
    """A turn's change set; `files_left_out` counts files that did not fit into a short result. `claimed_only` are files that
    the worker's tools say they wrote, and that git shows no change of."""

    base: str
    result: str
    files: list[FileChangeView]
    added_lines: int
    removed_lines: int
    files_left_out: int = 0
    claimed_only: list[str] = Field(default_factory=list)


class ConflictView(View):
    """A place where two sides changed the same: `yours` is in the user's file, `theirs` is the task's, `base` what both began
    from; `first_line` is 1-based in the user's file, 0 where there are no lines to show; `hunk_id` names the task's hunk."""

    path: str
    reason: str
    hunk_id: str = ""
    first_line: int = 0
    yours: str = ""
    base: str = ""
    theirs: str = ""


class OverlapView(View):
    """Two tasks that change the same files; `hunks` says whether they change lines close to each other."""

    task_ids: list[str]
    paths: list[str]
    hunks: bool


class LeftOutView(View):
    """A task whose result is not in the union; `with_tasks` are those that it conflicts with, none for the user's own files."""

    task_id: str
    with_tasks: list[str]
    conflicts: list[ConflictView]


class IntegrationView(View):
    """`order` are the tasks in the union, as they were merged; `culprits` those with which its checks fail; `before` says that
    the checks fail without any of the results, `probes` how often they were run to find out."""

    task_ids: list[str]
    order: list[str]
    overlaps: list[OverlapView]
    left_out: list[LeftOutView]
    culprits: list[str]
    before: bool
    probes: int


class FailureView(View):
    code: str
    message: str


class TestCountsView(View):
    """What a JUnit report says."""

    passed: int
    failed: int
    skipped: int
    failing: list[str]


class CheckView(View):
    """One check: `problem` says why it did not run to its end; `tail` are the last lines that it printed; `told` is all of it
    in a few words."""

    name: str
    passed: bool
    seconds: float
    tail: str = ""
    command: str = ""
    exit_code: int | None = None
    problem: str = ""
    tests: TestCountsView | None = None
    told: str = ""


class TurnView(View):
    """One exchange with the worker. `changes` is all since the task's base, which is what apply_task takes; `own_changes` is
    what this turn changed, null when that is the same."""

    turn_id: str
    brief: str
    asked: RouteView
    ran: RouteView | None
    queued_at: float
    started_at: float | None
    ended_at: float | None
    usage: UsageView
    text: str
    changes: ChangesView | None
    own_changes: ChangesView | None = None
    checks: list[CheckView]
    checked: Checked = Checked.NOT_CHECKED
    fix_round: int = 0
    failure: FailureView | None
    needs_review: str


class AppliedFileView(View):
    """`place` is "buffer" for an editor's open document, which is not saved yet, else "disk"; `unchanged` says that the file
    held the result before, `removed` that it is not there any more."""

    path: str
    place: Place
    unchanged: bool = False
    removed: bool = False


class LandingView(View):
    """One acceptance of a result into the user's files; `undone_at` is null while it stands."""

    apply_id: str
    turn_id: str
    paths: list[str]
    files: list[AppliedFileView]
    hunks: list[str]
    at: float
    by: str
    undone_at: float | None


class RejectionView(View):
    turn_id: str
    hunks: list[str]
    reason: str
    at: float


class TaskView(View):
    """A whole task. `place` is its place in the queue (1 is next), null when it is not queued; `live_text` is what the
    worker has said so far in the turn that runs; `revision` grows with everything that happens to the task."""

    task_id: str
    title: str
    workspace: str
    recipe: str
    phase: Phase
    revision: int
    place: int | None
    front: Front
    created_at: float
    changed_at: float
    anchor: AnchorView | None
    activity: ActivityView | None
    asks: list[AskView]
    closed_asks: list[ClosedAskView] = Field(default_factory=list)
    profile: Profile = Profile.WORKSPACE_WRITE
    budget: BudgetView = BudgetView()
    live_text: str
    turns: list[TurnView]
    notes: list[str]
    warnings: list[str] = Field(default_factory=list)
    allowed_paths: list[str] = Field(default_factory=list)
    after: list[str] = Field(default_factory=list)
    landings: list[LandingView]
    rejections: list[RejectionView] = Field(default_factory=list)
    integration: IntegrationView | None = None
    closed: bool


class TaskStatus(View):
    """A task in short; `phase` says more exactly than `state` where it stands.

    `elapsed_s`, `total_tokens`, `cost` and `files_changed` are of the whole task, or of the turn that was asked for; `cost_note` says when a
    price is not known. `path` is the file that it is about.
    `checked` and `checks` say what came of the checks of its last result ("tests: 14 passed"), `hunks_pending` how much of it is
    neither applied nor rejected. `partial_text` holds the last words of the worker; `next_step` says in plain words what one can do now.
    """

    task_id: str
    title: str
    state: TaskState
    phase: Phase
    revision: int
    place: int | None = None
    activity: ActivityView | None = None
    asks: list[AskView] = Field(default_factory=list)
    partial_text: str = ""
    turn_id: str
    elapsed_s: float
    total_tokens: int
    cost: float | None = None
    cost_note: str = ""
    ran: RouteView | None = None
    files_changed: int | None = None
    hunks_pending: int | None = None
    checked: Checked = Checked.NOT_CHECKED
    checks: list[str] = Field(default_factory=list)
    needs_review: str = ""
    warnings: list[str] = Field(default_factory=list)
    failure: FailureView | None = None
    next_step: str = ""
    workspace: str = ""
    path: str = ""


class ModelView(View):
    """Prices are US dollars per million tokens, null when unknown."""

    id: str
    name: str
    variants: list[str] = Field(default_factory=list)
    input_price: float | None = None
    output_price: float | None = None


class AgentView(View):
    name: str
    description: str = ""


class WorkerView(View):
    """`problem` is "" when the worker can be used, else what to do about it; `note` is what one should know all the same."""

    name: str
    version: str = ""
    agents: list[AgentView] = Field(default_factory=list)
    models: list[ModelView] = Field(default_factory=list)
    models_left_out: int = 0
    default_model: str = ""
    profiles: list[Profile] = Field(default_factory=list)
    problem: str = ""
    note: str = ""


class RecipeView(View):
    name: str
    title: str


class ErrorView(View):
    """What went wrong: `code` is a word of the error tree, `message` one plain sentence, `reasons` one line per file,
    `conflicts` both sides of each."""

    code: str
    message: str
    reasons: list[str] = Field(default_factory=list)
    conflicts: list[ConflictView] = Field(default_factory=list)
