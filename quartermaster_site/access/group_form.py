"""A group of people, as a form of administrators."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from quartermaster_site.access.groups import GroupValues, group_values
from quartermaster_site.errors import Refused

_TYPED = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}


class GroupForm(forms.Form):
    name = forms.CharField(label="Name", max_length=100, widget=forms.TextInput(attrs=_TYPED))
    members = forms.MultipleChoiceField(
        label="Members",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="What policies say about the group holds for these people.",
    )

    def __init__(self, data: Any = None, *, group: Group | None = None) -> None:
        stored = group_values(group) if group else GroupValues("")
        super().__init__(data, auto_id="f-%s", initial={"name": stored.name, "members": sorted(stored.members)})
        people = get_user_model().objects.order_by("username").values_list("pk", "username")
        self.fields["members"].choices = list(people)  # type: ignore[attr-defined]
        self.stored = stored

    def values(self) -> GroupValues:
        """Only for a valid form."""
        return GroupValues(self.cleaned_data["name"], frozenset(map(int, self.cleaned_data["members"])))

    def seen(self) -> GroupValues | None:
        """What stood on the page, as far as the form carried it."""
        if "was-name" not in self.data:
            return None
        posted: Any = self.data
        numbers = (text for text in posted.getlist("was-member") if text.isascii() and text.isdigit())
        return GroupValues(self.data["was-name"], frozenset(map(int, numbers)))

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of the service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
        if not error.fields:
            self.add_error(None, str(error))
