"""Who may write custom launch arguments, and how an editor gets to."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from quartermaster_site.access.models import Account, AuditEntry
from quartermaster_site.access.permissions import may_write_arguments


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("operator", False), ("editor", False), ("admin", True)])
def test_only_admins_may_without_a_grant(make_user, role, may):
    assert may_write_arguments(make_user(role)) is may


def test_a_grant_lets_an_editor_and_nobody_below(make_user, capsys):
    editor, operator = make_user("editor"), make_user("operator")
    for user in (editor, operator):
        call_command("grant_arguments", user.username)
    assert "editor may write launch arguments" in capsys.readouterr().out
    assert may_write_arguments(Account.objects.get(user=editor).user)
    assert not may_write_arguments(Account.objects.get(user=operator).user)
    call_command("grant_arguments", "editor")
    call_command("grant_arguments", "editor", "--revoke")
    assert not may_write_arguments(Account.objects.get(user=editor).user)
    assert AuditEntry.objects.filter(action="user.custom-args").count() == 3, "a second grant changes nothing"
    with pytest.raises(CommandError, match="nobody named"):
        call_command("grant_arguments", "nobody")
