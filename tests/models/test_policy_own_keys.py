"""Keys that people make for themselves: within what policies let them use, when they are made and ever after."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from models_app.key_form import OwnKeyForm
from models_app.models import ApiKey, KeyPolicy, Row
from models_app.selectors.api_keys import key_lines
from models_app.selectors.own_keys import hosts_for_own_keys, own_keys
from models_app.services.api_keys import (
    KeyValues,
    create_own_key,
    revoke_key,
    rotate_key,
)
from models_app.services.key_export import export_keys
from models_app.services.key_hosts import set_required, set_self_service
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Account, Installation, Policy
from quartermaster_site.errors import NotAllowed, Refused


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def shared(scanned, host, actor):
    """A host with models, whose people make keys of their own."""
    with pytest.raises(Refused, match="Require keys"):
        set_self_service(host=host, allowed=True, actor=actor)
    set_required(host=host, required=True, actor=actor)
    set_self_service(host=host, allowed=True, actor=actor)
    host.publish_dialect = "quartermaster"
    host.save()
    return host


@pytest.fixture
def otto(make_user):
    return make_user("operator", "otto")


def acting(user):
    """With what policies say now: they are read once per person object."""
    return Actor(user=type(user).objects.get(pk=user.pk), name=user.username)


def values(host, **given):
    return KeyValues(**{"name": "mine", "hosts": [host], "expires_at": timezone.now() + timedelta(days=30), **given})


def path_of(name):
    return Row.objects.get(file_name=name).path


BETA, ALPHA = "beta-2b-Q4_0.gguf", "alpha-1b-Q4_0.gguf"


def exported(host, key):
    return next((item for item in export_keys(host) if item.placeholder == key.placeholder), None)


def place_of(key):
    [line] = key_lines([key])
    [place] = line.places
    return place


def test_policy_limits_what_a_key_of_ones_own_reaches(shared, otto):
    key, secret = create_own_key(values=values(shared, everything=False, files=[path_of(BETA)]), actor=acting(otto))
    assert secret
    assert exported(shared, key).ids == {Row.objects.get(file_name=BETA).served_id}
    Policy.objects.create(user=otto, host=None, model="*beta*", level=1)
    assert exported(shared, key) is None
    place = place_of(key)
    assert (place.state, place.reason) == ("withheld", "its owner may not use all of its models")
    with pytest.raises(Refused, match="not use all"):
        create_own_key(values=values(shared, name="b", everything=False, files=[path_of(BETA)]), actor=acting(otto))
    create_own_key(values=values(shared, name="a", everything=False, files=[path_of(ALPHA)]), actor=acting(otto))


def test_policy_hides_models_from_the_form_and_all_models_is_for_those_who_may_use_all(shared, otto):
    key, _ = create_own_key(values=values(shared, everything=True), actor=acting(otto))
    assert exported(shared, key).everything
    Policy.objects.create(user=otto, host=None, model="*beta*", level=0)
    assert exported(shared, key) is None
    with pytest.raises(Refused, match="all models of this host"):
        create_own_key(values=values(shared, name="b", everything=True), actor=acting(otto))
    form = OwnKeyForm(user=acting(otto).user)
    assert "beta" not in str(form)
    assert "alpha" in str(form)
    Policy.objects.create(user=otto, host=shared, model="*", level=0)
    assert hosts_for_own_keys(acting(otto).user) == []


def test_policy_on_one_variant_narrows_a_key_without_a_word(shared, otto):
    key, _ = create_own_key(values=values(shared, everything=False, files=[path_of(BETA)]), actor=acting(otto))
    row = Row.objects.get(file_name=BETA)
    plan = row.plans.first()
    row.plans.create(profile_id=f"{row.served_id}-32k", placement_text=plan.placement_text)
    assert exported(shared, key).ids == {row.served_id, f"{row.served_id}-32k"}
    Policy.objects.create(user=otto, host=None, model="*-32k", level=0)
    assert exported(shared, key).ids == {row.served_id}
    assert place_of(key).state == "pending"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda user, host: type(user).objects.filter(pk=user.pk).update(is_active=False), "not active"),
        (lambda user, host: Account.objects.filter(user=user).update(role="viewer"), "no role"),
        (lambda user, host: KeyPolicy.objects.filter(host=host).update(self_service=False), "no keys of their own"),
        (lambda user, host: KeyPolicy.objects.filter(host=host).update(required=False), "no keys of their own"),
        (lambda user, host: user.delete(), "not active"),
    ],
)
def test_policy_withholds_the_key_of_who_may_no_longer(shared, otto, change, reason):
    key, _ = create_own_key(values=values(shared, everything=True), actor=acting(otto))
    change(otto, shared)
    assert exported(shared, key) is None
    assert reason in place_of(ApiKey.objects.get(pk=key.pk)).reason


def test_policy_on_limits_and_roles(host, actor, otto, make_user):
    set_required(host=host, required=True, actor=actor)
    with pytest.raises(Refused, match="no keys of their own"):
        create_own_key(values=values(host, everything=True), actor=acting(otto))
    set_self_service(host=host, allowed=True, actor=actor)
    with pytest.raises(NotAllowed):
        create_own_key(values=values(host, everything=True), actor=acting(make_user("viewer", "vera")))
    with pytest.raises(NotAllowed):
        set_self_service(host=host, allowed=False, actor=acting(otto))
    for end in (None, timezone.now() + timedelta(days=366)):
        with pytest.raises(Refused) as refused:
            create_own_key(values=values(host, everything=True, expires_at=end), actor=acting(otto))
        assert list(refused.value.fields) == ["expires"]
    for number in range(10):
        create_own_key(values=values(host, name=f"k{number}", everything=True), actor=acting(otto))
    with pytest.raises(Refused, match="at most 10"):
        create_own_key(values=values(host, name="one more", everything=True), actor=acting(otto))
    old = newest = ApiKey.objects.get(name="k0")
    for _ in range(10):
        newest, _secret = rotate_key(key=newest, overlap_days=7, actor=acting(otto))
    for key, words in ((newest, "Too many old secrets"), (old, "has a new secret already")):
        with pytest.raises(Refused, match=words):
            rotate_key(key=key, overlap_days=7, actor=acting(otto))


def test_policy_of_ownership_others_keys_do_not_exist(host, actor, otto, make_user):
    Installation.objects.update_or_create(pk=1, defaults={"setup_finished_at": timezone.now()})
    set_required(host=host, required=True, actor=actor)
    set_self_service(host=host, allowed=True, actor=actor)
    key, _ = create_own_key(values=values(host, everything=True), actor=acting(otto))
    edda = make_user("editor", "edda")
    for call in (revoke_key, lambda **given: rotate_key(overlap_days=0, **given)):
        with pytest.raises(NotAllowed):
            call(key=key, actor=acting(edda))
    mine, theirs = Client(), Client()
    mine.force_login(otto)
    theirs.force_login(edda)
    assert theirs.post(f"/account/keys/{key.pk}/revoke/").status_code == 404
    assert theirs.post(f"/account/keys/{key.pk}/rotate/", {"days": "0"}).status_code == 404
    assert "mine" not in theirs.get("/account/keys/").content.decode()
    answer = mine.post(f"/account/keys/{key.pk}/rotate/", {"days": "0"}).content.decode()
    assert "qm-" in answer
    [old, fresh] = sorted(own_keys(otto), key=lambda item: item.pk)
    assert (fresh.owner, fresh.is_own, old.successor) == (otto, True, fresh)
    assert mine.post(f"/account/keys/{fresh.pk}/revoke/").status_code == 302
    assert ApiKey.objects.get(pk=fresh.pk).revoked_at
    form = {"name": "web", "hosts": host.slug, "scope": "all", "expires": "30"}
    assert "qm-" in mine.post("/account/keys/new/", form).content.decode()
    assert mine.post("/account/keys/new/", {**form, "name": "x", "expires": "never"}).status_code == 422
