"""Users: made, changed and deactivated by administrators, of whom one always remains."""

from __future__ import annotations

import re
from html import unescape

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Account, AuditEntry
from quartermaster_site.access.people import PersonValues, change_person, create_person, reset_password
from quartermaster_site.errors import EditConflict, NotAllowed, Refused

PATH = "/access/users/"
PASSWORD = "correct horse battery"


@pytest.fixture
def admin(make_user, client):
    client.force_login(make_user("admin"))
    return client


def person_of(name):
    return get_user_model().objects.get(username=name)


def form_of(person, **changes):
    """What the page of a person sends, with changes."""
    account = person.account
    stored = {
        "role": account.role,
        "email": person.email,
        "custom_args": account.custom_args,
        "active": person.is_active,
    }
    was = {f"was-{key}": ("1" if value else "0") if isinstance(value, bool) else value for key, value in stored.items()}
    values = {**stored, **changes}
    return {**was, **{key: "on" if value is True else value for key, value in values.items() if value is not False}}


def test_a_new_person_gets_a_password_that_is_shown_once_and_replaced(admin):
    answer = admin.post(PATH, {"username": "edda", "role": "editor", "custom_args": "on"})
    word = unescape(re.search(r'<ol class="q-cmd mb-3"><li>(.+?)</li>', answer.content.decode()).group(1))
    edda = person_of("edda")
    assert (edda.account.role, edda.account.custom_args) == ("editor", True)
    assert word not in admin.get(PATH).content.decode()
    assert word not in repr(list(AuditEntry.objects.values()))
    hers = Client()
    signed_in = hers.post("/login/", {"login": "edda", "password": word})
    assert signed_in.status_code == 302
    assert hers.get("/models/")["Location"] == "/account/password/change/"
    fragment = hers.get("/models/", headers={"HX-Request": "true"})
    assert fragment["HX-Redirect"] == "/account/password/change/"
    asked = hers.get("/account/password/change/").content.decode()
    assert "Choose a password" in asked
    assert 'name="next" value="/"' in asked
    chosen = {"oldpassword": word, "password1": PASSWORD, "password2": PASSWORD}
    assert hers.post("/account/password/change/", chosen | {"next": "/"})["Location"] == "/"
    assert hers.get("/models/").status_code == 200
    assert "Choose a password" not in hers.get("/account/password/change/").content.decode()
    changed = {"oldpassword": PASSWORD, "password1": f"{PASSWORD}2", "password2": f"{PASSWORD}2"}
    assert hers.post("/account/password/change/", changed)["Location"] == "/account/"
    assert not Account.objects.get(user=edda).must_change_password
    assert AuditEntry.objects.filter(action="user.password", reason="chosen by the person").exists()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"username": "admin", "role": "viewer"}, "username"),
        ({"username": "no spaces", "role": "viewer"}, "username"),
        ({"username": "", "role": "viewer"}, "username"),
        ({"username": "eve", "role": "owner"}, "role"),
        ({"username": "eve", "role": "viewer", "email": "nowhere"}, "email"),
        ({"username": "x" * 5000, "role": "viewer"}, "username"),
    ],
)
def test_bad_values_stand_beside_their_field(admin, values, field):
    answer = admin.post(PATH, values)
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert get_user_model().objects.count() == 1


def test_a_role_changes_from_the_next_request_on(admin, make_user):
    otto = make_user("operator")
    his = Client()
    his.force_login(otto)
    assert his.get(PATH).status_code == 403
    assert admin.post(f"{PATH}{otto.pk}/", form_of(otto, role="admin")).status_code == 302
    assert his.get(PATH).status_code == 200
    entry = AuditEntry.objects.get(action="user.change")
    assert entry.changes == {"role": ["operator", "admin"]}


def test_an_untouched_form_changes_nothing(admin, make_user):
    vera = make_user("viewer")
    admin.post(f"{PATH}{vera.pk}/", form_of(vera))
    assert not AuditEntry.objects.filter(action="user.change").exists()


def test_whoever_is_deactivated_is_out_with_the_next_request(admin, make_user):
    vera = make_user("viewer")
    hers = Client()
    hers.force_login(vera)
    assert hers.get("/").status_code == 200
    admin.post(f"{PATH}{vera.pk}/", form_of(vera, active=False))
    assert hers.get("/")["Location"].startswith("/login/")
    assert "deactivated" in admin.get(PATH).content.decode()


@pytest.mark.parametrize("changes", [{"role": "editor"}, {"active": False}])
def test_the_last_administrator_stays(admin, changes):
    answer = admin.post(f"{PATH}{person_of('admin').pk}/", form_of(person_of("admin"), **changes))
    assert answer.status_code == 422
    assert "last active administrator" in answer.content.decode()
    assert person_of("admin").is_active
    assert Account.objects.get(user__username="admin").role == "admin"


def test_an_administrator_who_cannot_sign_in_does_not_count(admin, make_user):
    other = make_user("admin", "asleep")
    other.is_active = False
    other.save()
    with pytest.raises(Refused, match="last active administrator"):
        change_person(
            person=person_of("admin"), values=PersonValues("viewer"), seen={}, actor=Actor(person_of("admin"))
        )


def test_of_two_who_change_a_person_the_second_is_asked(admin, make_user):
    vera = make_user("viewer")
    stale = form_of(vera, role="operator")
    admin.post(f"{PATH}{vera.pk}/", form_of(vera, role="editor"))
    answer = admin.post(f"{PATH}{vera.pk}/", stale)
    assert answer.status_code == 409
    assert "It is now: role editor" in unescape(answer.content.decode())
    assert Account.objects.get(user=vera).role == "editor"


def test_a_reset_ends_sessions_and_asks_first(admin, make_user):
    vera = make_user("viewer")
    hers = Client()
    hers.force_login(vera)
    address = f"{PATH}{vera.pk}/password/"
    assert "every open session of viewer ends" in admin.get(address).content.decode()
    assert hers.get("/").status_code == 200
    assert "shown here once" in admin.post(address).content.decode()
    assert hers.get("/")["Location"].startswith("/login/")
    assert Account.objects.get(user=vera).must_change_password


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
def test_administrators_only(make_user, role):
    actor = Actor(user=make_user(role))
    for attempt in (
        lambda: create_person(username="eve", values=PersonValues("admin"), actor=actor),
        lambda: change_person(person=actor.user, values=PersonValues("admin"), seen={}, actor=actor),
        lambda: reset_password(person=actor.user, actor=actor),
    ):
        with pytest.raises(NotAllowed):
            attempt()


def test_a_conflict_names_what_is_stored(make_user):
    admin, vera = make_user("admin"), make_user("viewer")
    seen = {"role": "operator"}
    with pytest.raises(EditConflict) as caught:
        change_person(person=vera, values=PersonValues("editor"), seen=seen, actor=Actor(user=admin))
    assert caught.value.saved["role"] == "viewer"


class TestSessions:
    @pytest.fixture
    def vera(self, make_user):
        make_user("admin", "ada")  # until there is one, everything leads to the set-up
        return make_user("viewer")

    @staticmethod
    def browser(name="viewer"):
        found = Client(headers={"user-agent": "Firefox"})
        assert found.post("/login/", {"login": name, "password": PASSWORD}).status_code == 302
        return found

    def test_one_or_all_others_are_ended(self, vera, host):
        here, there, elsewhere = self.browser(), self.browser(), self.browser()
        html = here.get("/account/").content.decode()
        assert html.count("Firefox") == 3
        assert html.count("this one") == 1
        one = UserSession.objects.get(session_key=there.session.session_key)
        assert here.post("/account/sessions/end/", {"session": one.pk}).status_code == 302
        assert there.get("/account/")["Location"].startswith("/login/")
        here.post("/account/sessions/end/", {"session": "others"})
        assert elsewhere.get("/account/")["Location"].startswith("/login/")
        assert here.get("/account/").status_code == 200
        assert AuditEntry.objects.filter(action="session.end").count() == 2

    def test_nobody_ends_those_of_others(self, vera, make_user, host):
        make_user("operator")
        hers, his = self.browser(), self.browser("operator")
        number = UserSession.objects.get(user=vera).pk
        for typed in (number, "0", "x", "9" * 30, "-1"):
            assert his.post("/account/sessions/end/", {"session": typed}).status_code == 404
        assert his.post(f"{PATH}{vera.pk}/sessions/{number}/end/").status_code == 403
        assert hers.get("/account/").status_code == 200

    def test_an_administrator_does(self, vera, admin, host):
        hers = self.browser()
        number = UserSession.objects.get(user=vera).pk
        assert "Firefox" in admin.get(f"{PATH}{vera.pk}/").content.decode()
        admin.post(f"{PATH}{vera.pk}/sessions/{number}/end/")
        assert hers.get("/account/")["Location"].startswith("/login/")


def test_groups_of_a_person_are_listed_and_lead_to_explaining(admin, make_user):
    vera = make_user("viewer", "vera")
    vera.groups.add(Group.objects.create(name="vision & more"))
    assert "vision &amp; more" in admin.get(PATH).content.decode()
    person = admin.get(f"{PATH}{vera.pk}/").content.decode()
    assert "vision &amp; more" in person
    explain = re.search(r'href="(/access/explain/\?user=[^"]+)"', person).group(1)
    answer = admin.get(explain)
    assert answer.status_code == 200
    assert '<option value="vera" selected>' in answer.content.decode()
