"""Who a session belongs to."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend


class WithAccount(ModelBackend):
    """Reads a person together with their account, which every request asks for."""

    def get_user(self, user_id: int) -> Any:
        user = get_user_model().objects.select_related("account").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None
