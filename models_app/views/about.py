"""About: versions, checks, licences; and the documentation that is shipped with the product."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from models_app.pages.about_page import chapter_html, chapters, libraries, versions, workers
from models_app.pages.setup_page import run_checks
from models_app.pages.shell import shell_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.http import Request, page


@require_safe
@needs(Level.VIEW)
def about(request: Request) -> HttpResponse:
    shell = shell_of(request)
    context = {
        "versions": versions(),
        "workers": workers(shell.hosts),
        "checks": run_checks(shell.host) if may(request.user, Level.MANAGE) else [],
        "libraries": libraries(),
        "chapters": chapters(),
    }
    return page(request, "about/about.html", context)


@require_safe
@needs(Level.VIEW)
def doc_show(request: Request, name: str) -> HttpResponse:
    """One chapter of the documentation."""
    text = mark_safe(chapter_html(name))  # noqa: S308 - our own file, read with raw HTML switched off
    title = next(chapter.title for chapter in chapters() if chapter.name == name)
    return page(request, "about/chapter.html", {"text": text, "title": title, "chapters": chapters(), "name": name})
