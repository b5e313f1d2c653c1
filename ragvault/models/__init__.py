"""Everything that loads weights: embedders, rerankers, where they come from, and small fakes.

    registry    which models there are, what each is made of and who made it
    shelf       the models folder: what is there, and reading it with every byte verified
    fetch       getting what is not there: wheels, a hub, a folder
    load        a name becomes an Embedder or a Reranker
    onnx static sentence fake     the engines
    cache       embed only what has no vector yet
    choose      which model a vault uses

This file imports none of them, so that asking for one does not load the others.
"""
