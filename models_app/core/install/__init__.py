"""Builds of backends: which file of a release fits, where it goes, and whether it is there (classes.md 16)."""
