"""Measurements, each with the command that makes it. Data: see data.py."""
