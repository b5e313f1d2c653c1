"""Understanding: query text becomes a QueryPlan. understand.py is the way in."""
