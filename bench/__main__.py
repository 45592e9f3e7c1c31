"""`./quartermaster bench [NAME…] [--quick] [--json]`: measures and prints ratios against a baseline of the same run."""

from __future__ import annotations

import argparse
import importlib
import json

BENCHMARKS = {
    "chaos": "random kills of workers, agents, web server and broker while machines scan and files are written",
    "header": "one header with 152k tokens and 151k merges, against a minimal struct skip loop",
    "scan": "a first scan, a scan again and a look, against gguf.GGUFReader and os.walk plus stat; peak memory",
    "plan": "planning every zoo model, against one projection",
    "truth": "compute buffers of every measured model, against llama.cpp's own projection",
    "config": "the file of 1,000 models with four profiles each: rendering from plans, and the pages that compare",
    "editor": "previews, a bulk edit and the weight of pages among 500 models on 4 hosts, against an empty view",
    "live": "200 viewers polling the live page of a host, against one viewer: real web server, five seconds a poll",
    "fleet": "20 machines with 500 models each: real agents, all first scans at once, the Overview meanwhile",
    "many": "one host with 10,000 models: list, search, Overview, planning all again, memory",
    "page": "server time of pages and previews with the whole zoo, against an empty view",
}
ALONE = ("chaos", "fleet")
"""Minutes of everything the machine has: run when they are named."""
OPTIONS = {"chaos": ("minutes", "seed"), "fleet": ("hosts", "models"), "many": ("models",)}


def main() -> int:
    """Run the named benchmarks (none named: all); exit code 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        prog="quartermaster bench",
        description="ratios against a baseline of the same run; code 1 when a limit is missed",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}; none named: all but {' and '.join(ALONE)}"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true", help="one JSON list and nothing else")
    parser.add_argument("--hosts", type=int, metavar="N", help="machines of fleet (20)")
    parser.add_argument("--models", type=int, metavar="M", help="models on each of them (500), or of many (10000)")
    parser.add_argument("--minutes", type=float, metavar="M", help="how long chaos goes on (10)")
    parser.add_argument("--seed", type=int, metavar="S", help="of the chances in chaos, to have the same again")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    rows = []
    for name in options.names or [name for name in BENCHMARKS if name not in ALONE]:
        if not options.json:
            print(f"{name}: {BENCHMARKS[name]}", flush=True)
        given = {option: getattr(options, option) for option in OPTIONS.get(name, ())}
        for row in importlib.import_module(f"bench.{name}").run(options.quick, **given):
            rows.append({"benchmark": name, **row})
            if not options.json:
                print_row(row)
    if options.json:
        print(json.dumps(rows))
    return int(any(missed(row) for row in rows))


def missed(row: dict) -> bool:
    """A row fails with its ratio (or, without a baseline, its value) above `limit` or its value above `limit_value`."""
    figure = row.get("ratio") if row.get("ratio") is not None else row["value"]
    above = row.get("limit") is not None and figure > row["limit"]
    return above or (row.get("limit_value") is not None and row["value"] > row["limit_value"])


def print_row(row: dict) -> None:
    """One aligned line for a person."""
    line = f"  {row['name']:<46} {row['value']:>10.2f} {row['unit']:<5}"
    if row.get("ratio") is not None:
        line += f" = {row['ratio']:.3g} x {row['baseline']}"
    limit = row["limit"] if row.get("limit") is not None else row.get("limit_value")
    if limit is not None:
        line += f" (limit {limit}{', MISSED' if missed(row) else ''})"
    print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
