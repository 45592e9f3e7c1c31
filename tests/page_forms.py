"""The forms of a page as a browser sees and sends them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Control:
    """One control that has a name. `choices` are the values of its options."""

    tag: str
    kind: str
    inputmode: str = ""
    choices: list[str] = field(default_factory=list)

    @property
    def takes_a_number(self) -> bool:
        return self.inputmode in ("numeric", "decimal") or self.kind == "number"


@dataclass
class PageForm:
    """One form: where it goes, what it would send untouched (without a button), and its buttons."""

    action: str = ""
    method: str = "get"
    id: str = ""
    values: dict[str, str] = field(default_factory=dict)
    controls: dict[str, Control] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    preview: str = ""
    """Where changes go while somebody types."""

    @property
    def numbers(self) -> list[str]:
        return [name for name, control in self.controls.items() if control.takes_a_number]


def forms_of(html: str) -> list[PageForm]:
    """All forms of a page, with the controls that name one by their `form` attribute."""
    reader = _Reader()
    reader.feed(html)
    for name, values, control in reader.apart:
        for form in reader.forms:
            if form.id == name[0]:
                form.values |= values
                form.controls[name[1]] = control
    return reader.forms


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self.apart: list[tuple[tuple[str, str], dict[str, str], Control]] = []
        self._open: PageForm | None = None
        self._select: tuple[str, PageForm, Control] | None = None
        self._area: tuple[str, PageForm] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = PageForm(given.get("action", ""), given.get("method", "get").lower(), given.get("id", ""))
            self._open.preview = given.get("hx-post", "")
            self.forms.append(self._open)
        elif tag == "option" and self._select:
            self._option(given)
        elif tag in ("input", "select", "textarea", "button") and given.get("name") and "disabled" not in given:
            self._control(tag, given)

    def _control(self, tag: str, given: dict[str, str]) -> None:
        kind = given.get("type", "text" if tag == "input" else "submit" if tag == "button" else tag)
        control = Control(tag, kind, given.get("inputmode", ""))
        form = self._open
        if "form" in given:
            form = PageForm(id=given["form"])
            self.apart.append(((given["form"], given["name"]), form.values, control))
        if form is None:
            return
        if kind == "submit":
            form.buttons.append((given["name"], given.get("value", "")))
            return
        form.controls[given["name"]] = control
        if tag == "select":
            self._select = given["name"], form, control
        elif tag == "textarea":
            form.values[given["name"]] = ""
            self._area = given["name"], form
        elif kind not in ("checkbox", "radio") or "checked" in given:
            form.values[given["name"]] = given.get("value", "on" if kind == "checkbox" else "")

    def _option(self, given: dict[str, str]) -> None:
        assert self._select is not None
        name, form, control = self._select
        control.choices.append(given.get("value", ""))
        if "selected" in given or name not in form.values:
            form.values[name] = given.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._area:
            name, form = self._area
            form.values[name] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = None
        elif tag == "textarea" and self._area:
            name, form = self._area
            # The line break after the tag is no part of the text; browsers send CR-LF.
            form.values[name] = form.values[name].removeprefix("\n").replace("\r\n", "\n").replace("\n", "\r\n")
            self._area = None
