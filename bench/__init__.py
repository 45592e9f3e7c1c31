"""Benchmarks: each compares with a named baseline measured in the same run, because machines differ and drift."""
