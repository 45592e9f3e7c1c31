"""Django's command line, for development and maintenance."""

from __future__ import annotations

import os
import sys

from gpus_app.core.errors import QuartermasterError


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "quartermaster_site.settings")
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except QuartermasterError as error:
        print(f"manage.py: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
