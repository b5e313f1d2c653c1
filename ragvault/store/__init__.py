"""The catalogue and everything else in an index folder: layout, lock, caches, access counts."""
