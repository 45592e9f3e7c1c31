"""Who, where and which model: the question of the Explain page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model

from gpus_app.models import Host


class ExplainForm(forms.Form):
    user = forms.ChoiceField(label="User", widget=forms.Select(attrs={"class": "form-select"}))
    host = forms.ChoiceField(label="Host", widget=forms.Select(attrs={"class": "form-select"}))
    model = forms.CharField(
        label="Model",
        required=False,
        max_length=1024,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
        help_text="Its id, a variant's id, or the path of its file. Empty: the host as a whole.",
    )

    def __init__(self, data: Any = None, *, person: str = "") -> None:
        """`person` is chosen beforehand, where nothing is asked yet."""
        super().__init__(data, auto_id="f-%s", initial={"user": person})
        people = get_user_model().objects.order_by("username").values_list("username", "username")
        hosts = Host.objects.order_by("slug").values_list("slug", "name")
        self.fields["user"].choices = list(people)  # type: ignore[attr-defined]
        self.fields["host"].choices = list(hosts)  # type: ignore[attr-defined]

    def chosen(self) -> tuple[Any, Host, str]:
        """Only for a valid form."""
        typed = self.cleaned_data
        person = get_user_model().objects.select_related("account").get(username=typed["user"])
        return person, Host.objects.get(slug=typed["host"]), typed["model"]
