"""Integrations of neardup with other libraries: a module for each, loaded on import."""
