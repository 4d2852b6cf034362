"""Documents read again to be looked at: by name, and those that a run removed."""
