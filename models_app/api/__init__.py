"""The JSON API for scripts at `/api/v1/`: the same selectors, services and rights as the pages, by token."""
