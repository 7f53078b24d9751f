import torch
from torch.nn.functional import softplus


class ReferenceLightGCN(torch.nn.Module):
    """LightGCN (He et al., SIGIR 2020) with a sparse adjacency matrix and automatic differentiation."""

    def __init__(self, users, items, n_users, n_items, layers=3, embedding_size=64, l2=1e-4):
        super().__init__()
        self.n_users, self.layers, self.l2 = n_users, layers, l2
        n_nodes = n_users + n_items
        self.table = torch.nn.Parameter(0.1 * torch.randn(n_nodes, embedding_size))  # layer 0: users, then items
        sender, receiver = torch.cat([users, items + n_users]), torch.cat([items + n_users, users])
        degree = torch.bincount(receiver, minlength=n_nodes)
        weight = (degree[sender] * degree[receiver]).rsqrt()  # 1 / sqrt(d_u d_i)
        edges, shape = torch.stack([receiver, sender]), (n_nodes, n_nodes)
        self.adjacency = torch.sparse_coo_tensor(edges, weight, shape, check_invariants=True)

    def readout(self):
        """Mean of layers 0 to L; a layer is the weighted sum over the neighbours' rows of the layer before."""
        layers = [self.table]
        for _ in range(self.layers):
            layers.append(self.adjacency @ layers[-1])
        return torch.stack(layers).mean(dim=0)  # (n_nodes, embedding_size)

    def loss(self, users, positive, negative):
        """BPR on read-out rows plus L2 on the same rows of layer 0."""
        nodes = torch.stack([users, positive + self.n_users, negative + self.n_users])
        user, taken, other = self.readout()[nodes]
        margin = (user * (taken - other)).sum(dim=1)  # s_ui - s_uj
        return softplus(-margin).mean() + self.l2 / 2 * self.table[nodes].square().sum() / len(users)


def train(model, batches, epochs, learning_rate=1e-3):
    """One step of Adam per batch; `batches(epoch)` yields users, positive and negative items."""
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for epoch in range(1, epochs + 1):
        for users, positive, negative in batches(epoch):
            adam.zero_grad()
            model.loss(users, positive, negative).backward()
            adam.step()
