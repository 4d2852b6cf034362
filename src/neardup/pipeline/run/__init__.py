"""The parts of one run of deduplication: what matches, what was found, its state for a resume."""
