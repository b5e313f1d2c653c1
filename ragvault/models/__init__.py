"""Models: embedders and rerankers, their weights, and where the weights come from.

    load        a name becomes an Embedder or a Reranker; which model a vault uses
    onnx static sentence_transformers fake     the engines
    registry    the models known by name, and the installed ones, read with every byte verified
    install     download what is missing: try each source, verify, move into place

This file imports none of them, so that using one does not load the others.
"""
