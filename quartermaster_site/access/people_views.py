"""Users: who may sign in, with which role. Administrators only."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from quartermaster_site.access import people
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.models import Role
from quartermaster_site.access.people_form import PersonForm
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.access.selectors import AuditFilter, audit_entries, get_person, open_sessions
from quartermaster_site.access.selectors import people as everybody
from quartermaster_site.access.sessions import end_session
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import go_to, page

RECENT = 10
ROLE_NAMES = dict(Role.choices)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def person_list(request: HttpRequest) -> HttpResponse:
    """Everybody; POST makes another one, whose first password is shown once."""
    form = PersonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            person, word = people.create_person(
                username=form.cleaned_data["username"], values=form.values(), actor=actor_of(request)
            )
        except Refused as error:
            form.take_refusal(error)
        else:
            return _password_page(request, person, word)
    context = {"people": everybody(), "form": form, "role_names": ROLE_NAMES}
    return page(request, "access/person_list.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def person_edit(request: HttpRequest, pk: int) -> HttpResponse:
    person = get_person(pk)
    form, status = PersonForm(request.POST if request.method == "POST" else None, person=person), 200
    if request.method == "POST":
        status = _save(request, form, person)
        if status == 200:
            messages.success(request, f"{person} is changed, from the next request on.")
            return go_to(request, reverse("access:person-list"))
    context = {
        "person": get_person(pk),
        "form": form,
        "seen": people.values_of(get_person(pk)),
        "is_self": person.pk == request.user.pk,
        "sessions": open_sessions(person),
        "entries": audit_entries(AuditFilter()).filter(user=person)[:RECENT],
    }
    return page(request, "access/person_edit.html", context, status=status)


def _save(request: HttpRequest, form: PersonForm, person: object) -> int:
    """200 when the person is stored, else the status of the page that says why not."""
    if not form.is_valid():
        return 422
    try:
        people.change_person(person=person, values=form.values(), seen=form.seen(), actor=actor_of(request))
    except Refused as error:
        form.take_refusal(error)
        return 422
    except EditConflict as error:
        now = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in error.saved.items() if value != "")
        form.add_error(None, f"{error} It is now: {now}.")
        return 409
    return 200


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def person_password(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first: GET is the question, POST makes a password for once and shows it."""
    person = get_person(pk)
    if request.method == "POST":
        return _password_page(request, person, people.reset_password(person=person, actor=actor_of(request)))
    return page(request, "access/person_password.html", {"person": person})


def _password_page(request: HttpRequest, person: object, word: str) -> HttpResponse:
    return page(request, "access/person_created.html", {"person": person, "word": word})


@require_POST
@needs(Level.MANAGE)
def person_session_end(request: HttpRequest, pk: int, session: int) -> HttpResponse:
    """Sign a person out in one browser."""
    person = get_person(pk)
    end_session(user=person, number=session, actor=actor_of(request))
    messages.success(request, f"{person} is signed out there.")
    return go_to(request, reverse("access:person-edit", args=[pk]))
