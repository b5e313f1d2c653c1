"""The doctor: does every part work, here and on this vault?

    findings   what was found, how bad it is, and what cures it
    machine    Python, libraries, models, folders, the system's limits
    integrity  the index against itself and against the vault
    alive      each leg and each signal of the ranking, asked with the vault's own words
    examine    all of it, in that order

Reads everything and changes nothing: a cure is a command for the person who asked.
"""
