"""The folder of a run: its state, so that a killed run goes on, and what it is about."""
