"""Training of graph methods: the loop, early stopping, checkpoints, several processes."""
