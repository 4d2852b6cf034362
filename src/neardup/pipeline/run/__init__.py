"""The parts of one run of deduplication: its rule, its decision, its state for a resume."""
