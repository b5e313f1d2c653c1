"""Settings: what there is to set, where values come from, and the named rankings (profiles)."""
