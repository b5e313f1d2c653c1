"""The steps of the write path, each bringing one thing up to date with what comes before it."""
