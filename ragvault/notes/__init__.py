"""A file becomes notes, sections, chunks and links. Pure but for walk, read and git_dates."""
