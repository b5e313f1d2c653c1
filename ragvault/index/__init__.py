"""One structure for each question asked of a vault: by meaning, by word, by code, by link."""
