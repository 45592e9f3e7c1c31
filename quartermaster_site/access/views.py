"""A person's own page: the look, and links to sign-in settings."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from quartermaster_site.access.models import Account
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.access.services import save_theme
from quartermaster_site.http import go_to, page

THEMES = Account._meta.get_field("theme").choices or ()


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def account(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        save_theme(user=request.user, theme=request.POST.get("theme", ""))
        messages.success(request, "Saved.")
        return go_to(request, reverse("access:account"))
    row = Account.objects.filter(user=request.user.pk).first()
    return page(request, "access/account.html", {"themes": THEMES, "theme": row.theme if row else "auto"})
