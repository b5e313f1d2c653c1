"""The vector index: passages by their embeddings, in plain FAISS.

    file.py    one FAISS file a model: written once, mapped by readers, never changed
    index.py   that file, plus the vectors the catalogue has since, in memory
    tiers.py   one index a model; a passage takes part with its best tier only

It is a cache: it holds passage ids and vectors, and knows nothing of notes. The catalogue is the
log, so one changed note writes no file at all; now and then the writer makes a new one.
"""
