"""Commands that show, measure or judge the decisions of a run."""
