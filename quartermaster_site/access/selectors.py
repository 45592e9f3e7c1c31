"""Questions about people and about how far the installation is."""

from __future__ import annotations

from datetime import datetime

from quartermaster_site.access.models import Account, Installation, Role


def administrator_exists() -> bool:
    """Whether somebody active has the role admin."""
    return Account.objects.filter(role=Role.ADMIN, user__is_active=True).exists()


def setup_finished_at() -> datetime | None:
    """When the wizard was finished; None while it still runs."""
    row = Installation.objects.filter(pk=1).first()
    return row.setup_finished_at if row else None
