"""Templates without their indentation: a tenth of what pages would send, and it means nothing in HTML."""

from __future__ import annotations

import re

from django.template import Origin
from django.template.loaders.filesystem import Loader as FolderLoader

_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


class Plain(FolderLoader):
    """The files of our templates folder. No template may indent inside `<pre>` or `<textarea>`."""

    def get_contents(self, origin: Origin) -> str:
        return _INDENT.sub("", super().get_contents(origin))
