"""A policy, as a form of administrators."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from gpus_app.models import Host
from models_app.services.policies import MOST_NOTE, PolicyValues, values_of
from quartermaster_site.access.models import Policy, Role
from quartermaster_site.access.rules import EVERY, MOST_PATTERN
from quartermaster_site.errors import EditConflict, Refused

_TYPED = {"class": "form-control", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
_CHOSEN = {"class": "form-select"}
EVERYONE = "everyone"
LEVEL_HELP = (
    "None hides it everywhere. View shows it. Operate also scans, tests, publishes and unloads."
    " Edit also changes settings."
)


def subject_choices() -> list[tuple[str, Any]]:
    """Everyone, roles, groups, users; who is an administrator is subject to none."""
    roles = [(f"role:{role}", label) for role, label in Role.choices if role != Role.ADMIN]
    groups = [(f"group:{group.pk}", group.name) for group in Group.objects.order_by("name")]
    users = [(f"user:{user.pk}", user.username) for user in get_user_model().objects.order_by("username")]
    parts = [("Roles", roles), ("Groups", groups), ("Users", users)]
    return [(EVERYONE, "Everyone"), *((name, part) for name, part in parts if part)]


class PolicyForm(forms.Form):
    """Who, on which host, which models, how far."""

    subject = forms.ChoiceField(label="Who", widget=forms.Select(attrs=_CHOSEN))
    host = forms.ChoiceField(label="Host", required=False, widget=forms.Select(attrs=_CHOSEN))
    model = forms.CharField(
        label="Models",
        max_length=MOST_PATTERN,
        initial=EVERY,
        widget=forms.TextInput(attrs=_TYPED),
        help_text=(
            "* is all models and whatever concerns the host as a whole. Else an id or a pattern of ids with * and ?;"
            " with a slash it is about the path of the file. Upper and lower case are the same."
        ),
    )
    level = forms.TypedChoiceField(
        label="May",
        coerce=int,
        choices=[(level, name.title()) for level, name in Policy.LEVELS],
        initial=1,
        widget=forms.Select(attrs=_CHOSEN),
        help_text=LEVEL_HELP,
    )
    note = forms.CharField(
        label="Note", required=False, max_length=MOST_NOTE, widget=forms.TextInput(attrs=_TYPED), help_text="Optional."
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(
        self, data: Any = None, *, policy: Policy | None = None, initial: dict[str, Any] | None = None
    ) -> None:
        super().__init__(data, auto_id="f-%s", initial=_initial(policy) if policy else initial)
        self.fields["subject"].choices = subject_choices()  # type: ignore[attr-defined]
        hosts = Host.objects.order_by("slug").values_list("slug", "name")
        self.fields["host"].choices = [("", "Every host"), *hosts]  # type: ignore[attr-defined]

    def values(self) -> PolicyValues:
        """Only for a valid form."""
        typed = self.cleaned_data
        kind, _, number = typed["subject"].partition(":")
        host = Host.objects.filter(slug=typed["host"]).first() if typed["host"] else None
        return PolicyValues(
            user=int(number) if kind == "user" else None,
            group=int(number) if kind == "group" else None,
            role=number if kind == "role" else "",
            host=host.pk if host else None,
            model=typed["model"],
            level=typed["level"],
            note=typed["note"],
        )

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of the service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
        if not error.fields:
            self.add_error(None, str(error))

    def take_conflict(self, error: EditConflict) -> None:
        """Show what is stored now; saving again overwrites it knowingly."""
        now = ", ".join(f"{key} {value}" for key, value in error.saved.items() if value != "")
        self.add_error(None, f"{error} It is now: {now}.")
        self.data = {**self.data.dict(), "version": str(error.version)}  # type: ignore[attr-defined]


def _initial(policy: Policy) -> dict[str, Any]:
    held = values_of(policy)
    parts = {"user": held.user, "group": held.group, "role": held.role}
    subject = next((f"{kind}:{value}" for kind, value in parts.items() if value), EVERYONE)
    host = policy.host.slug if policy.host else ""
    plain = {"model": held.model, "level": held.level, "note": held.note, "version": policy.version}
    return {"subject": subject, "host": host, **plain}
