"""Planning of every class that is no chat model on llama-server: one module per engine, one table over the classes."""
