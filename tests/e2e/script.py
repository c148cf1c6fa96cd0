"""A script on the real hub, over rpc: plain calls and their plain answers."""

from contextlib import contextmanager

from offload.hub.client import connect
from tests.e2e.stage import brief


class Script:
    """`project` is where its tasks are."""

    def __init__(self, client, project):
        self._client = client
        self._project = project

    def ask(self, method, **params):
        return self._client.call(method, params)

    def start(self, *steps, **params):
        """The id of a new task, whose worker plays `steps`."""
        started = self.ask("start_task", brief=brief(*steps), workspace=str(self._project), **params)
        return started["task_id"]

    def rested(self, *task_ids):
        """Where the tasks stand once none of them is at work."""
        while not (waited := self.ask("wait_for_tasks", task_ids=task_ids, timeout_s=45))["done"]:
            pass
        by_id = {task["task_id"]: task for task in waited["tasks"]}
        return [by_id[task_id] for task_id in task_ids]

    def ready(self, *steps, **params):
        """The id of a new task that has come to a good end."""
        task_id = self.start(*steps, **params)
        (task,) = self.rested(task_id)
        assert (task["phase"], task["failure"]) == ("ready", None), task
        return task_id

    def hunks(self, task_id, path):
        """The ids of the hunks of a file, first ones first, with what became of each."""
        files = self.ask("get_changes", task_id=task_id)["changes"]["files"]
        (file,) = [file for file in files if file["path"] == path]
        return {hunk["hunk_id"]: hunk["state"] for hunk in file["hunks"]}

    def changes(self):
        """Every task that changes from now on; the connection is for this alone."""
        return self._client.watch()


@contextmanager
def scripting(stage, project):
    with connect(stage.environ) as client:
        yield Script(client, project)
