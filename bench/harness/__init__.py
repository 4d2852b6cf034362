"""What runs the cases: corpora, environments, processes, comparisons and records."""
