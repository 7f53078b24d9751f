"""A run becomes a service: snapshot, index, batches, HTTP; it answers what `Model` answers, and never trains."""
