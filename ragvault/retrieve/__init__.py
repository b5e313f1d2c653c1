"""A plan becomes candidates: the legs, run in parallel, and what is known of what they found."""
