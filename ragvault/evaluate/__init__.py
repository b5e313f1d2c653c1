"""Is it any good, and is it healthy? Measuring and tuning answers, and checking an installation.

questions    judged questions, read from and written to files
probes       questions that a vault makes of its own notes
metrics      how good one ranking is, and how good the returned sections are as context
run          ask questions of an index; search once and rank again with other settings
report       the numbers of many answers, and the difference between two rankings
evaluator    one report over profiles, parts switched off, and signals: `ragvault eval`
signals      how often each leg, boost, stage and filter has an effect
tune         better weights for one vault: `ragvault tune`
doctor       does every part work: `ragvault doctor`
"""
