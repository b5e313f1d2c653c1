"""What search, related, links and status return, and its JSON: one form for every caller."""
