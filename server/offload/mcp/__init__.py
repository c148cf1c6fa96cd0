"""The front for models: MCP tools from the operations table. Only this room knows the MCP SDK; it decides nothing about tasks."""
