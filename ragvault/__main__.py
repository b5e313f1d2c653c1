"""python -m ragvault"""

from ragvault.cli.main import run

run()
