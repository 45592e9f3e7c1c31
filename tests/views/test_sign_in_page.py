"""Sign-in pages in our look: labelled fields, one message for a wrong name and a wrong password."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client


@pytest.fixture
def login(client: Client, make_user: Callable[..., Any]) -> Client:
    make_user("admin")
    return client


def test_fields_have_labels_and_our_look(login: Client) -> None:
    html = login.get("/login/").content.decode()
    assert "There is no self-registration" in html
    for name in ("id_login", "id_password"):
        field = re.search(rf"<input[^>]*id=\"{name}\"[^>]*>", html)
        assert field is not None
        assert 'class="form-control"' in field[0]
        assert "placeholder" not in field[0]
        assert f'<label class="form-label" for="{name}"' in html


def test_wrong_name_and_wrong_password_read_the_same(login: Client) -> None:
    def message(name: str) -> str:
        html = login.post("/login/", {"login": name, "password": "wrong wrong wrong"}).content.decode()
        found = re.search(r'role="alert">(.*?)</p>', html, re.S)
        assert found is not None
        return found[1]

    assert message("admin") == message("nobody")


def test_other_account_pages_are_framed(admin: Client) -> None:
    for address in ("/account/password/change/", "/logout/"):
        html = admin.get(address).content.decode()
        assert 'class="q-sign"' in html
        assert "form-control" in html or "Stay" in html


def test_pages_of_two_factor_sign_in_lead_back_and_show_the_whole_secret(login: Client) -> None:
    assert "Back to Account" not in login.get("/login/").content.decode()
    signed_in = login.post("/login/", {"login": "admin", "password": "correct horse battery"})
    assert signed_in.status_code == 302
    for address in ("/account/2fa/", "/account/2fa/totp/activate/"):
        answer = login.get(address, follow=True)
        if answer.redirect_chain:  # the password is asked again before factors are changed
            answer = login.post(answer.redirect_chain[-1][0], {"password": "correct horse battery"}, follow=True)
        html = answer.content.decode()
        assert 'href="/account/">Back to Account' in html
    assert 'class="form-control q-n" id="authenticator_secret"' in html
