"""The front for models: MCP tools from the operations table. Only this room knows the MCP SDK; it decides nothing about tasks."""

from offload.mcp.server import serve_model

__all__ = ["serve_model"]
