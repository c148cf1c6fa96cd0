"""Ids that several of the domain's values hold."""

from __future__ import annotations

from typing import NewType

TaskId = NewType("TaskId", str)
