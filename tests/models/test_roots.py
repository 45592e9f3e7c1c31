from __future__ import annotations

import pytest

from models_app import folder_events, host_tasks
from models_app.models import Finding, Override, Revision, Root, Row
from models_app.services import add_root, is_outside, remove_root, start_scan
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import NotAllowed, Refused
from quartermaster_site.jobs.models import Job


def test_a_root_need_not_exist(host, actor):
    root = add_root(host=host, path="/mnt/unplugged/", actor=actor)
    assert root.path == "/mnt/unplugged"
    assert root.state == "new"


def test_adding_it_again_is_no_second_root(host, actor):
    assert add_root(host=host, path="/m", actor=actor) == add_root(host=host, path="/m/../m", actor=actor)


def test_the_same_folder_for_another_kind_is_refused(host, actor):
    add_root(host=host, path="/m", actor=actor)
    with pytest.raises(Refused, match="models of another kind"):
        add_root(host=host, path="/m", category="image", actor=actor)


def test_removing_twice_is_once(host, actor):
    root = add_root(host=host, path="/m", actor=actor)
    stale = Root.objects.get(pk=root.pk)
    remove_root(root=root, actor=actor)
    assert remove_root(root=stale, actor=actor) == 0
    assert AuditEntry.objects.filter(action="root.remove").count() == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "whole path"),
        ("models", "whole path"),
        ("/m/a", "lies inside /m"),
        ("/", "/m lies inside"),
        ("/x" * 600, "too long"),
        ("/a\nb", "control character"),
        ("/${HOME}", "macro"),
    ],
)
def test_paths_that_cannot_be_roots(host, actor, path, message):
    add_root(host=host, path="/m", actor=actor)
    with pytest.raises(Refused, match=message):
        add_root(host=host, path=path, actor=actor)


def test_paths_follow_the_rules_of_the_host(host, actor):
    host.os_family = "windows"
    host.save()
    add_root(host=host, path="D:\\Models", actor=actor)
    with pytest.raises(Refused, match="lies inside"):
        add_root(host=host, path="d:\\models\\llm", actor=actor)
    with pytest.raises(Refused, match="whole path"):
        add_root(host=host, path="/srv/models", actor=actor)


def test_only_known_categories(host, actor):
    with pytest.raises(Refused, match="category"):
        add_root(host=host, path="/m", category="LLM", actor=actor)


def test_a_folder_that_the_host_lets_nobody_see(scanned, scan, host, folder, monkeypatch):
    """It is not entered, its state says why, and what was found in it earlier stays."""
    monkeypatch.setenv("QM_BROWSE_ROOTS", str(folder.with_name("elsewhere")))
    assert is_outside(host, str(folder))
    (folder / "alpha-1b-Q4_0.gguf").unlink()
    scan()
    root = Root.objects.get()
    assert (root.state, "QM_BROWSE_ROOTS" in root.state_reason) == ("unreadable", True)
    assert set(Row.objects.values_list("state", flat=True)) == {"offline"}
    assert [finding.kind for finding in Finding.objects.all()] == ["outside"]
    monkeypatch.setenv("QM_BROWSE_ROOTS", str(folder.parent))
    assert not is_outside(host, str(folder))
    scan()
    assert sorted(Row.objects.values_list("state", flat=True)) == ["missing", "present", "present"]


def test_a_link_out_of_the_folders_leaves_nothing_to_wait_for(scanned, scan, folder, monkeypatch):
    """Publishing does not stop for what the owner keeps out for good; it stands among the issues."""
    monkeypatch.setenv("QM_BROWSE_ROOTS", str(folder))
    (folder / "out").symlink_to("/")
    scan()
    assert Root.objects.get().state == "ok"
    assert list(Finding.objects.values_list("kind", "path")) == [("outside", f"{folder}/out")]


def test_such_a_folder_is_neither_looked_at_nor_followed(scanned, folder, monkeypatch):
    followed, sent = [], []
    monkeypatch.setenv("QM_ROLE", "host")
    monkeypatch.setattr(folder_events, "follow", lambda paths, tell: followed.append(list(paths)))
    monkeypatch.setattr(host_tasks, "send", lambda *args, **message: sent.append(message["answer"]["fingerprint"]))
    for roots in (str(folder), str(folder.with_name("elsewhere"))):
        monkeypatch.setenv("QM_BROWSE_ROOTS", roots)
        host_tasks.look_at_folders("local", "x", [[str(folder), ""]], "")
    assert followed == [[str(folder)], []]
    assert sent[0] != sent[1]


def test_removing_a_root_forgets_its_models_but_no_override(scanned, host, actor):
    root = host.roots.get()
    Override.objects.create(host=host, match=Row.objects.first().path, fields={"ctx": 4096})
    assert remove_root(root=root, actor=actor) == 3
    assert not Row.objects.exists()
    assert Override.objects.exists()
    assert AuditEntry.objects.get(action="root.remove").changes["models"] == [3, 0]


def test_a_scan_needs_a_folder(host):
    with pytest.raises(Refused, match="no model folders"):
        start_scan(host=host, actor=Actor())


@pytest.mark.parametrize(
    ("role", "may_scan", "may_add"),
    [("viewer", False, False), ("operator", True, False), ("editor", True, False), ("admin", True, True)],
)
def test_who_may(host, make_user, monkeypatch, role, may_scan, may_add):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    host.roots.create(path="/m")
    actor = Actor(user=make_user(role, "somebody"), name="somebody")
    for allowed, action in (
        (may_scan, lambda: start_scan(host=host, actor=actor)),
        (may_add, lambda: add_root(host=host, path="/n", actor=actor)),
    ):
        if allowed:
            action()
        else:
            with pytest.raises(NotAllowed):
                action()
    assert Job.objects.exists() == may_scan


def test_a_removed_root_leaves_no_finding_and_no_entry(
    scanned, host, actor, folder, django_capture_on_commit_callbacks
):
    other = Finding.objects.create(host=host, kind="file-unreadable", path=f"{folder}-2/link.gguf", text="broken link")
    Finding.objects.create(host=host, kind="file-unreadable", path=f"{folder}/link.gguf", text="broken link")
    Finding.objects.create(host=host, kind="root-missing", path=str(folder), text="it does not exist")
    assert Revision.objects.latest("number").summary["entries"]
    with django_capture_on_commit_callbacks(execute=True):
        remove_root(root=host.roots.get(), actor=actor)
    assert list(Finding.objects.all()) == [other]
    assert not Revision.objects.latest("number").summary["entries"]
