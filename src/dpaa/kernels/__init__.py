"""Plain arrays in, plain arrays out; no users, items or methods.

`reference` is slow and readable and defines what is right; `spmm`, `topk` and `negatives` are its fast twins.
"""
