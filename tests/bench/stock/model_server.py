"""A stock server of the MCP SDK over stdio, with one tool that does nothing."""

from mcp.server import MCPServer

server = MCPServer("stock")


@server.tool()
async def start_task(brief: str) -> dict[str, str]:
    """Start nothing."""
    return {"task_id": brief}


server.run()
