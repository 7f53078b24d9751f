"""Training pairs as a bipartite graph, the linear propagation over it, and the kernels both are computed with."""

from dpaa.graph._layers import edge_cosines
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.cooccurrence import KnownPairs, Lists, in_common, row_blocks
from dpaa.graph.kernels import Adam, bag, top_k
from dpaa.graph.propagation import Propagation
from dpaa.graph.tiles import TiledTable

__all__ = ["Adam", "BipartiteGraph", "EdgeWeights", "KnownPairs", "Lists", "Propagation", "TiledTable", "bag"]
__all__ += ["edge_cosines", "in_common", "row_blocks", "top_k"]
