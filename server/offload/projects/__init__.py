"""What a workspace says of itself in its `offload.toml`, and which of these files a person trusts.

The file is the user's own, on disk; no worker's copy of it is looked at.
"""

from offload.projects.files import ProjectFiles

__all__ = ["ProjectFiles"]
