"""A llama.cpp for tests: a server that does nothing, and a llama-fit-params that prints what it is given."""

from __future__ import annotations

from pathlib import Path

BUILD = "0.6.0-dev (build 0, commit unknown)"
SCRIPT = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
  --version) echo "version: $(cat "$here/build")" >&2; exit 0 ;;
esac
printf '%s\\n' "$@" > "$here/asked"
env > "$here/environment"
[ -e "$here/error" ] && {{ cat "$here/error" >&2; exit 1; }}
[ -e "$here/slow" ] && sleep 60
cat "$here/answer"
"""


def llama_folder(folder: Path, answer: str, build: str = BUILD) -> Path:
    """`folder` with both programs; returns the path of the server. `answer` is what a question is answered with."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("llama-server", "llama-fit-params"):
        program = folder / name
        program.write_text(SCRIPT.format() if name != "llama-server" else "#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    (folder / "answer").write_text(answer, encoding="utf-8")
    (folder / "build").write_text(build, encoding="utf-8")
    return folder / "llama-server"
