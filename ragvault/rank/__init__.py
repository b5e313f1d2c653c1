"""Ranking: candidates become an ordered answer. One file per stage; pipeline.py has their order."""
