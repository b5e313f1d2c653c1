"""What a search looks in: the keyword index, the vectors of each tier, and the graph of links."""
