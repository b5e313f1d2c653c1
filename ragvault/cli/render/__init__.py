"""Text for people: the only formatting of the command line."""
