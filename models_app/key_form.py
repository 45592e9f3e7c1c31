"""An API key as a form: name, hosts, what it reaches, until when."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import ApiKey
from models_app.selectors.api_keys import scope_choices
from models_app.selectors.own_keys import Choices, hosts_for_own_keys, own_scope_choices
from models_app.services.api_keys import MOST_NAME, MOST_NOTE, KeyValues
from quartermaster_site.errors import EditConflict, Refused

KEEP, NEVER, ON_DATE = "keep", "never", "date"
SPANS = {"30": "30 days", "90": "90 days", "365": "365 days"}
ALL, ONLY = "all", "only"
_FILE, _ID = "file:", "id:"
SHOWN_ROWS = 12


class KeyForm(forms.Form):
    """A new key, or one that is there: then `version` says what the person saw."""

    name = forms.CharField(
        label="Name",
        max_length=MOST_NAME,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
        help_text="Who or what uses it.",
    )
    hosts = forms.ModelMultipleChoiceField(
        label="Hosts", queryset=Host.objects.none(), to_field_name="slug", widget=forms.CheckboxSelectMultiple
    )
    scope = forms.ChoiceField(
        label="Reaches",
        choices=[(ALL, "All models"), (ONLY, "Only these")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    models = forms.MultipleChoiceField(
        label="These",
        required=False,
        widget=forms.SelectMultiple(attrs={"class": "form-select", "size": SHOWN_ROWS}),
        help_text="For “Only these”. The first line of each group is the model with all its variants.",
    )
    future = forms.BooleanField(
        label="Include future variants", required=False, initial=True, help_text="Of models that are chosen whole."
    )
    expires = forms.ChoiceField(
        label="Ends",
        choices=[(NEVER, "never"), *((days, f"in {text}") for days, text in SPANS.items()), (ON_DATE, "on a date")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    date = forms.DateField(
        label="Date",
        required=False,
        widget=forms.DateInput(attrs={"class": "form-control", "type": "date"}),
        help_text="For “on a date”: the last day on which it is good, in UTC.",
    )
    note = forms.CharField(
        label="Note",
        required=False,
        max_length=MOST_NOTE,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0, required=False)

    def __init__(self, data: Any = None, *, key: ApiKey | None = None) -> None:
        super().__init__(data, auto_id="f-%s", initial=_initial(key))
        self.key = key
        self._offer(Host.objects.all(), scope_choices())
        if key is not None and key.expires_at is not None:
            kept = (KEEP, f"{key.expires_at:%Y-%m-%d %H:%M} UTC, as it is")
            self.fields["expires"].choices = [kept, *self.fields["expires"].choices]  # type: ignore[attr-defined]

    def _offer(self, hosts: QuerySet[Host], known: Choices) -> None:
        self.fields["hosts"].queryset = hosts  # type: ignore[attr-defined]
        if self.key is None and len(hosts) == 1:
            self.fields["hosts"].initial = list(hosts)
        self.profiles = {path: profiles for path, _, profiles in known}
        self.fields["models"].choices = _model_choices(self.key, known)  # type: ignore[attr-defined]

    def values(self) -> KeyValues:
        """Only for a valid form."""
        given = self.cleaned_data
        chosen = given["models"] if given["scope"] == ONLY else []
        files = [item.removeprefix(_FILE) for item in chosen if item.startswith(_FILE)]
        ids = [item.removeprefix(_ID) for item in chosen if item.startswith(_ID)]
        if not given["future"]:
            ids += [profile for path in files for profile in self.profiles.get(path, ())]
            files = [path for path in files if path not in self.profiles]
        return KeyValues(
            given["name"], list(given["hosts"]), given["scope"] == ALL, files, ids, self._expires_at(), given["note"]
        )

    def _expires_at(self) -> datetime | None:
        choice = self.cleaned_data["expires"]
        if choice == KEEP and self.key is not None:
            return self.key.expires_at
        if choice in SPANS:
            return timezone.now() + timedelta(days=int(choice))
        day = self.cleaned_data.get("date")
        return datetime.combine(day, time.max, UTC).replace(microsecond=0) if choice == ON_DATE and day else None

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("expires") == ON_DATE and not given.get("date") and "date" not in self.errors:
            self.add_error("date", "Choose the day on which it ends.")
        return given

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error({"scope": "models", "expires": "date"}.get(key, key), text)
        if not error.fields:
            self.add_error(None, str(error))

    def take_conflict(self, error: EditConflict) -> None:
        self.add_error(None, f"{error} Save once more to store yours instead.")
        stored = self.data.copy()  # type: ignore[attr-defined]
        stored["version"] = str(error.version)
        self.data = stored


class OwnKeyForm(KeyForm):
    """A new key of the person's own: their hosts, the models that they may use, and an end."""

    def __init__(self, data: Any = None, *, user: Any) -> None:
        super().__init__(data)
        hosts = Host.objects.filter(pk__in=[host.pk for host in hosts_for_own_keys(user)])
        self._offer(hosts, own_scope_choices(user))
        del self.fields["version"]
        ends = [choice for choice in self.fields["expires"].choices if choice[0] != NEVER]  # type: ignore[attr-defined]
        self.fields["expires"].choices = ends  # type: ignore[attr-defined]
        self.initial.update(expires=next(iter(SPANS)), scope=ONLY)


def _initial(key: ApiKey | None) -> dict[str, Any]:
    if key is None:
        return {"scope": ALL, "expires": NEVER, "future": True}
    return {
        "name": key.name,
        "hosts": list(key.hosts.all()),
        "scope": ALL if key.everything else ONLY,
        "models": [*(_FILE + path for path in key.files), *(_ID + name for name in key.ids)],
        "future": True,
        "expires": KEEP if key.expires_at else NEVER,
        "note": key.note,
        "version": key.version,
    }


def _model_choices(key: ApiKey | None, known: Choices) -> list[tuple[str, list[tuple[str, str]]]]:
    """A group a model; what a key names and nobody serves stays, so that a save does not drop it."""
    groups = [
        (
            served,
            [(_FILE + path, f"{served} with its variants"), *((_ID + name, name) for name in profiles)],
        )
        for path, served, profiles in known
    ]
    files = {path for path, _, _ in known}
    ids = {name for _, _, profiles in known for name in profiles}
    lost = [(_FILE + path, path) for path in (key.files if key else ()) if path not in files]
    lost += [(_ID + name, name) for name in (key.ids if key else ()) if name not in ids]
    return [*groups, *([("not served now", lost)] if lost else [])]
