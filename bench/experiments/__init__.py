"""Measurements that decided something, each a program; docs/decisions has the outcomes."""
