"""What words are: folding, stems, names, unspaced scripts, spelling, highlighting."""
