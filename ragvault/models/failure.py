"""What a source raises inside the models room. The caller of a pull never sees it: when every
source has failed it becomes one ModelUnavailable that holds them all."""


class SourceError(Exception):
    """This source did not give the bytes that are named; the next one may. Says why."""
