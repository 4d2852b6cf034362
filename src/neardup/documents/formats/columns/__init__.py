"""Inputs of typed columns: Parquet and Arrow."""
