"""A person from whom nothing is hidden, for tests of questions in which it matters who asks. Nobody is stored."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser

from quartermaster_site.access.models import Account


def seer() -> AbstractBaseUser:
    user = get_user_model()(username="seer")
    Account(user=user, role="admin")
    return user
