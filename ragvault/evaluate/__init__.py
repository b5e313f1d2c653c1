"""Is it any good, and is it healthy? Measuring and tuning answers, and checking an installation.

questions    judged questions, read from and written to files
probes       questions that a vault makes of its own notes
report       the numbers of one answer, of many, and the difference between two rankings
run          ask questions under any settings, and without each part in turn: `ragvault eval`
tune         better weights for one vault: `ragvault tune`
doctor       does every part work: `ragvault doctor`
"""
