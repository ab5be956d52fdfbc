"""holdfast as a server of the Model Context Protocol: the two tools, and what belongs to them.

Nothing else of holdfast imports the SDK, and nothing imports this package but the verb `mcp`, when it is called.
"""
