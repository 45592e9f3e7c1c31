"""From the lines of a command in the file to the words that are executed (launch.md 7.1, config-yaml.md 10.1)."""

from __future__ import annotations

from collections.abc import Sequence

from models_app.core.export.load import load
from models_app.core.export.router.expansion import without_comments
from models_app.core.launch.macros import PORT
from models_app.core.launch.tokens import POSIX, split_command

MARKS = {"folded": ">", "literal": "|"}


def spawned_argv(style: str, lines: Sequence[str], port: int, rules: str = POSIX) -> list[str]:
    """The words of a `cmd` block. Comment lines are removed after YAML has folded: in a folded block they are words."""
    block = "".join(f"  {line}\n" for line in lines)
    command = load(f"cmd: {MARKS[style]}\n{block}").value["cmd"]
    return split_command(without_comments(command).replace(PORT, str(port)), rules)
