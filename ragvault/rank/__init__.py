"""Ranking: candidates become an ordered list. One file per stage; pipeline.py has their order."""
