"""neardup inside other libraries: one module each, loaded by importing it."""
