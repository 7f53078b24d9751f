"""LightGCN: weighted sums over neighbours, mean of the layers, BPR + L2 on layer 0 (He et al., SIGIR 2020)."""

from dpaa.methods.graph_method import GraphMethod, method


@method(
    "lightgcn",
    title="the plain backbone: mean of propagated embeddings, BPR loss",
    paper="He et al., LightGCN, SIGIR 2020",
    default_candidate=True,
)
class LightGCN(GraphMethod):
    """The backbone: every hook of `GraphMethod` as it is."""
