"""A file becomes a note with sections, passages, links and dates."""
