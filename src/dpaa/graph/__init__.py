"""Training pairs as a bipartite graph, and the linear propagation over it."""
