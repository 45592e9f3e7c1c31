"""What a policy says of an object, and what a query with its condition finds, are the same."""

from __future__ import annotations

import pytest

from gpus_app.models import Host
from models_app.models import Component, Row
from quartermaster_site.access.grants import FILES, Grants
from quartermaster_site.access.rules import Level, Rule, Subject, ordered

NAMES = (
    "qwen3-vl-8b",
    "Qwen3-VL",
    "50%_off",
    "50x_off",
    "a.b+c",
    "aXb+c",
    "künstler",
    "KÜNSTLER",
    "end",
    "bend",
    "ende",
)
PATTERNS = (
    "qwen3-vl-8b", "*VL*", "qwen3*", "*end", "end", "*", "**", "50%*", "50%_off", "a.b+c", "a?b+c", "*k?nst*", "künst*",
    "*e*d*", "/models/qwen3*", "sub/*", "*/SUB/b*", "\\models\\end*",
)  # fmt: skip


@pytest.fixture
def rows(db):
    host = Host.objects.create(slug="gpu-a", name="A")
    paths = {name: f"/models/{'sub/' if 'b' in name else ''}{name}.gguf" for name in NAMES}
    return [
        Row.objects.create(host=host, path=path, served_id=name, base_id="base", file_name="f")
        for name, path in paths.items()
    ]


def grants(*rules: tuple[str, Level], default: Level = Level.VIEW, host: int | None = None) -> Grants:
    made = (Rule(number, Subject.EVERYONE, "", host, *rule) for number, rule in enumerate(rules, 1))
    return Grants(default, ordered(made))


def same(rows: list[Row], found: Grants) -> None:
    for level in (Level.VIEW, Level.EDIT):
        expected = {row.served_id for row in rows if found.on(row.policy_scope()) >= level}
        assert set(found.seen(Row.objects.all(), level=level).values_list("served_id", flat=True)) == expected


def test_policy_patterns_mean_the_same_in_queries(rows):
    for pattern in PATTERNS:
        same(rows, grants((pattern, Level.NONE)))
        same(rows, grants((pattern, Level.NONE), ("*vl*", Level.EDIT), ("*", Level.VIEW)))


def test_policy_of_hosts_is_a_condition_that_costs_no_query(rows):
    one, other = rows[0].host, Host.objects.create(slug="gpu-b", name="B")
    hide = ("*", Level.NONE)
    for found, seen in (
        (grants(hide, host=one.pk), {other}),
        (grants(("*", Level.VIEW), host=one.pk, default=Level.NONE), {one}),
        (grants(("*vl*", Level.NONE)), {one, other}),
        (grants(hide), set()),
    ):
        assert set(Host.objects.filter(found.hosts("pk"))) == seen


def test_policy_of_one_host_and_of_all_mean_the_same_in_queries(rows):
    host = rows[0].host_id
    same(rows, grants(("*", Level.NONE), host=host))
    same(rows, grants(("*", Level.NONE), host=host + 1))
    same(rows, grants(("end*", Level.EDIT), default=Level.NONE))
    same(rows, grants())


def test_policy_that_changes_nothing_costs_no_condition(rows):
    assert grants(("*vl*", Level.EDIT)).condition() is None
    assert grants(("*vl*", Level.VIEW), ("*", Level.OPERATE)).condition() is None
    assert grants(("*vl*", Level.NONE)).condition() is not None
    assert grants(("*vl*", Level.VIEW)).condition(level=Level.EDIT) is not None


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("/models/secret.safetensors", True),
        ("/models/secret/mmproj.gguf", True),
        ("D:\\models\\Secret\\mmproj.gguf", True),
        ("/models/secrets/mmproj.gguf", False),
        ("/models/other.gguf", False),
    ],
)
def test_policy_of_files_goes_by_their_name_and_the_folders_above(rows, path, hidden):
    Component.objects.create(host=rows[0].host, path=path, role="vae")
    assert grants(("secret", Level.NONE)).seen(Component.objects.all(), FILES).exists() != hidden
