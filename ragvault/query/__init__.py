"""Text becomes a plan: operators and filters, the kind of question, more words, a hypothesis."""
