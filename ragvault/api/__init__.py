"""Other doors than the command line: tools for agents, over MCP."""
