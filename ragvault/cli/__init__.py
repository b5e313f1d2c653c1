"""The command line: one file a command; render is the only formatting."""
