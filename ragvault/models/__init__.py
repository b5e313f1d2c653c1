"""Models: embedders and rerankers, their weights, and where the weights come from.

    load        a name becomes an Embedder or a Reranker; which model a vault uses
    onnx static sentence_transformers fake     the engines
    embed       embed only the texts that have no vector yet
    registry    the models known by name, each file with its SHA-256 (registry.toml)
    weights     the models folder: what is installed, read with every byte verified
    install     install what is missing: try each source, verify, move into place
    download    the sources: a wheel, a hub, a local folder
    progress    reports downloads to the user

This file imports none of them, so that using one does not load the others.
"""
