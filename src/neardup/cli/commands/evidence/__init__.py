"""Commands that show, measure or judge what a run does."""
