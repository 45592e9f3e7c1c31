"""What the reading routers do with a file and a request (config-yaml.md 10, router-api.md): rules of foreign programs.

They serve the checks before a write, the preview of evictions, and stand-ins in tests.
"""
