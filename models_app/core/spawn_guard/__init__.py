"""The spawn guard: a finished command, looked at once more with what is free just before it starts (sizing.md 16).

Facts in, decision out. Reading the facts, saying what was decided and starting the program is `models_app.spawn`.
Everything here is loaded at each start of a model, so it uses `planning` and `launch`, never settings or plans.
"""
