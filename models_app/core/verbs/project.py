"""`project`: the bytes of exactly this launch, on each device and on the host. No search, no budget."""

from __future__ import annotations

import argparse

from models_app.core.errors import UsageError
from models_app.core.verbs.environment import Environment
from models_app.core.verbs.knobs import add_knobs, given_knobs, launch_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this verb."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="GGUF files; any shard stands for its set")
    parser.add_argument(
        "--batch",
        metavar="FILE.jsonl",
        help="one launch a line: an object with file, ctx and knobs; - reads standard input",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line and file")
    parser.add_argument("--no-cache", action="store_true", help="read every header afresh")
    add_knobs(parser)


def run(options: argparse.Namespace, environment: Environment) -> int:
    """Exit code 0 all good, 1 some files failed, 2 wrong usage."""
    if bool(options.files) == bool(options.batch):
        raise UsageError("give either files or --batch")
    if options.files and options.ctx is None:
        raise UsageError("--ctx N is missing: the tokens of the whole pool, as -c of llama-server")
    knobs = given_knobs(options)
    launch = launch_of(knobs) if options.files else None
    # Readers and planning are loaded only now, so that a wrong argument is answered at once.
    from models_app.core.verbs import projections

    with projections.open_tables(environment, use_cache=not options.no_cache) as tables:
        if launch is None:
            return projections.run_batch(options.batch, knobs, tables, environment)
        return projections.run_files(options.files, launch, tables, environment, as_json=options.json)
