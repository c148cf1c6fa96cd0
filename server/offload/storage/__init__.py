"""Where events last: the journal on SQLite. Knows what an event looks like as JSON, and nothing of what events mean."""

from offload.storage.journal import SqliteJournal

__all__ = ["SqliteJournal"]
