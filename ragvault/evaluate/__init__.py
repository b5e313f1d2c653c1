"""Is it any good? Judged questions and the numbers made from them."""
