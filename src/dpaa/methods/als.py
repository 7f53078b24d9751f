"""ALS: matrix factorisation with confidence weights, by the `implicit` library (Hu et al., ICDM 2008)."""

import warnings

import torch
from pydantic import Field
from scipy.sparse import csr_matrix
from torch import Tensor

from dpaa.errors import import_extra
from dpaa.methods._shared import items_of
from dpaa.methods.base import ClosedForm, Histories, Vectors, fitted, method


@method(
    "als",
    title="matrix factorisation by alternating least squares (extra: references)",
    paper="Hu et al., Collaborative Filtering for Implicit Feedback Datasets, ICDM 2008",
    grid={"confidence": (1.0, 5.0, 20.0, 40.0), "ridge": (1.0, 10.0, 100.0)},
)
class ALS(ClosedForm):
    """Score = inner product of the factors; a new user's factors are solved for with the items held fixed.

    Σ_ui c_ui (p_ui − x_u·y_i)² + λ (Σ ‖x_u‖² + Σ ‖y_i‖²)

    with p = 1 and c = `confidence` for training pairs, p = 0 and c = 1 for all others.
    """

    embedding_size: int = Field(default=64, ge=1, le=65_536, description="columns of the factor tables")
    confidence: float = Field(default=20.0, gt=0, description="weight of a training pair; any other pair weighs 1")
    ridge: float = Field(default=10.0, gt=0, description="λ: weight of the squared factors")
    iterations: int = Field(default=15, ge=1, description="number of sweeps; each solves for users and items in turn")

    user_factors: Tensor = fitted("users", "embedding_size")
    item_factors: Tensor = fitted("items", "embedding_size")

    def learn(self) -> None:
        """Factorise by `implicit`; a repeated pair counts once."""
        implicit, limits = (
            import_extra(module, "method als", "references") for module in ("implicit.cpu.als", "threadpoolctl")
        )
        graph = self.graph
        edges = (graph.edge_user.numpy(), graph.edge_item.numpy())
        matrix = csr_matrix((torch.ones(graph.n_edges).numpy(), edges), shape=(graph.n_users, graph.n_items))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="OpenBLAS", category=RuntimeWarning)  # advice on speed
            model = implicit.AlternatingLeastSquares(
                factors=self.embedding_size,
                regularization=self.ridge,
                alpha=self.confidence,
                iterations=self.iterations,
                random_state=self.seed % 2**32,  # all that numpy's old generator takes
            )
            with limits.threadpool_limits(1, "blas"):  # its own threads are the parallel part
                model.fit(matrix, show_progress=False)
        self.user_factors = torch.from_numpy(model.user_factors).float()
        self.item_factors = torch.from_numpy(model.item_factors).float()

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """The factors; a new user's are solved for."""
        table = self.item_factors if items is None else self.item_factors[items]
        if histories is None:
            return Vectors(lambda index: self.user_factors[index], table)
        taken = items_of(self.graph, histories)
        return Vectors(lambda index: self.solved(*taken.entries(index), len(index)), table)

    def solved(self, owner: Tensor, item: Tensor, n_users: int) -> Tensor:
        """Solve for users' factors, `(YᵀY + (c − 1) Σ y yᵀ + λI)⁻¹ c Σ y` over each user's items.

        Parameters
        ----------
        owner, item : (entries,) user, ascending, and item of each pair
        n_users : how many users, those without items included

        Returns
        -------
        (n_users, d)
        """
        # float64: YᵀY sums over all items, and solving magnifies what rounding leaves of it.
        table, size = self.item_factors.double(), self.embedding_size
        base = table.T @ table + self.ridge * torch.eye(size, dtype=torch.float64)
        lengths = torch.bincount(owner, minlength=n_users).tolist()
        factors = torch.zeros(n_users, size)
        for user, vectors in enumerate(torch.split(table[item], lengths)):
            gram = base + (self.confidence - 1.0) * vectors.T @ vectors
            factors[user] = torch.linalg.solve(gram, self.confidence * vectors.sum(0)).float()
        return factors

    def item_vectors(self) -> Tensor:
        """The items' factors."""
        return self.item_factors
