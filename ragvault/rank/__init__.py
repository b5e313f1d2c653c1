"""Candidates become an order: one file a stage, pipeline.py has them in turn. No I/O, no engine."""
