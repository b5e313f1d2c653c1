"""What every engine does to a text before it reads it."""


def plain(text: str) -> str:
    """The text with lone surrogates, which no tokenizer takes, as question marks.

    They come from file names and command lines that are not UTF-8.
    """
    return text.encode("utf-8", "replace").decode("utf-8")
