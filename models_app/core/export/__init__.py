"""From plans to a router's file: documents, dialects, validation."""
