"""One connected editor: what it has open, what it is shown, and who it is to core."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from offload.core.caller import Caller
from offload.core.delegation import Delegation
from offload.domain.task import Task, TaskId
from offload.lsp.applying import PATIENCE, BufferEdits, Patience
from offload.lsp.client import Client
from offload.lsp.documents import EditorDocuments, path_of
from offload.lsp.marks import Marks
from offload.lsp.patches import Patches
from offload.lsp.places import Places
from offload.lsp.progress import TaskProgress
from offload.lsp.protocol import TASK_CHANGED
from offload.wire import convert


class Editor:
    """Made before the first message; `run` must run beside the connection."""

    def __init__(
        self, server: LanguageServer, delegation: Delegation, caller: Caller, patience: Patience = PATIENCE
    ) -> None:
        self._server = server
        self._group: asyncio.TaskGroup | None = None
        self._initialized = asyncio.Event()
        self.delegation = delegation
        self.caller = caller
        self.client = Client(server)
        self.documents = EditorDocuments(caller.id, delegation.documents)
        self.edits = BufferEdits(self.client, self.documents, patience)
        self.documents.noticed = self.edits.noticed
        self.documents.told = self.edits.told
        self.places = Places(delegation)
        self.marks = Marks(self.client, delegation, self.documents, self.places)
        self.progress = TaskProgress(self.client, delegation)
        self.patches = Patches()
        self.named: Callable[[str], object] = str

    def learn(self, params: types.InitializeParams) -> None:
        """Take in what the editor says about itself."""
        self.client.learn(params)
        self.caller = replace(self.caller, name=self.client.name or self.caller.name)
        self.named(self.caller.name)
        self.delegation.documents.attach(self.caller.id, self.edits)
        self._initialized.set()

    def caller_for(self, file: str = "") -> Caller:
        """Who asks: in the workspace folder that holds the file, else in the file's own folder."""
        folders = self._folders()
        if not file or not Path(file).is_absolute():
            return replace(self.caller, workspace=folders[0])
        holding = [folder for folder in folders if Path(file).is_relative_to(folder)]
        return replace(
            self.caller, workspace=max(holding, key=lambda folder: len(folder.parts), default=Path(file).parent)
        )

    def show_progress(self, task_id: TaskId) -> None:
        """Show the progress of a task that this editor has just started or continued."""
        if self._group is not None:
            self._group.create_task(self.progress.show(task_id))

    def leave(self) -> None:
        """The connection is ending: nothing new is shown, and nothing more is waited for."""
        self._group = None
        self.edits.leave()

    async def run(self) -> None:
        """Follow the tasks and keep the marks right, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._initialized.wait()  # an editor must not be told anything before
            group.create_task(self._follow())
            group.create_task(self.marks.run())

    async def _follow(self) -> None:
        with self.delegation.watching() as watcher:
            while True:
                for task in await watcher.changes():
                    self._changed(task)

    def _changed(self, task: Task) -> None:
        self.progress.changed(task)
        if not self._concerns(task):
            return
        view = convert.task(task, self.delegation.live(task.id))
        self.client.notify(TASK_CHANGED, view.model_dump(mode="json"))
        self.marks.soon()

    def _concerns(self, task: Task) -> bool:
        """Whether the task's workspace holds, or is inside of, a folder of this editor, or a file that it has open."""
        workspace = Path(task.spec.workspace)
        folders = self._folders()
        paths = [document.path for document in self.documents.all()]
        return any(folder.is_relative_to(workspace) or workspace.is_relative_to(folder) for folder in folders) or any(
            path.is_relative_to(workspace) for path in paths
        )

    def _folders(self) -> list[Path]:
        """The editor's workspace folders as they are now, else its root, else the folder it was started in."""
        workspace = self._server.workspace
        uris = [*workspace.folders, *([workspace.root_uri] if workspace.root_uri else [])]
        paths = [path for path in map(path_of, uris) if path is not None]
        return paths or [self.caller.workspace]
