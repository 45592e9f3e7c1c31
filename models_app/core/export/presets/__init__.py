"""Dialect `llama-server`: the presets of llama.cpp's own router, in an INI dialect of its own."""

SLUG = "llama-server"
FILE_NAME = "models.ini"
