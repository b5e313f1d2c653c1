"""python -m ragvault"""

from ragvault.cli.start import run

run()
