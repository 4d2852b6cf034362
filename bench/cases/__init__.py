"""One module a case: `rows` says what to compare, the other functions run in the workers."""
