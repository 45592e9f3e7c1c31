"""The API itself: who asks, what errors look like, and its description."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.security import HttpBearer

from gpus_app.core.errors import QuartermasterError
from models_app.api import schemas
from models_app.api.acting import router as acting
from models_app.api.agents import router as agents
from models_app.api.reading import router as reading
from quartermaster_site.access.gate import is_admitted
from quartermaster_site.access.tokens import person_of
from quartermaster_site.errors import Busy, EditConflict, NotAllowed, SiteError
from quartermaster_site.version import product_version


class Token(HttpBearer):
    """`Authorization: Bearer qmt-…`. What the person may do, the token may."""

    openapi_description = "A token made on the Account page."

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        person = person_of(token)
        if person is None:
            return None
        if not is_admitted(request, person):
            raise NotAllowed("This token may not be used from where you are.")
        request.user = person
        return person


def for_people(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The description is for whoever may use the API or the pages, by a token or as they are signed in."""

    @require_safe
    def described(request: HttpRequest, **arguments: Any) -> HttpResponse:
        try:
            is_known = request.user.is_authenticated or Token()(request)
        except NotAllowed as error:
            return expected(request, error)
        return view(request, **arguments) if is_known else refused(request, AuthenticationError())

    return described


api = NinjaAPI(
    title="Quartermaster",
    version="1",
    description=f"Models with their plans, hosts, jobs, previews and publishing. Quartermaster {product_version()}.",
    urls_namespace="api-1",
    auth=Token(),
    docs_url=None,  # its pages need scripts from elsewhere
    openapi_url="openapi.json",
    docs_decorator=for_people,
)
api.add_router("", reading)
api.add_router("", acting)
api.add_router("", agents)


def problem(request: HttpRequest, status: int, title: str, message: str, **more: Any) -> HttpResponse:
    """An error as every endpoint gives it: {"error": {"title", "message", "fields"?, "saved"?}}."""
    request.refusal = message  # type: ignore[attr-defined] # for the audit log
    return api.create_response(request, {"error": {"title": title, "message": message, **more}}, status=status)


@api.exception_handler(QuartermasterError)
def expected(request: HttpRequest, error: QuartermasterError) -> HttpResponse:
    """What a page would say, with the same status."""
    more: dict[str, Any] = {}
    if fields := getattr(error, "fields", None):
        more["fields"] = fields
    if isinstance(error, EditConflict):
        more["saved"] = error.saved
    status, title = (error.status, error.title) if isinstance(error, SiteError) else (422, "Refused")
    response = problem(request, status, title, str(error), **more)
    if isinstance(error, Busy):
        response["Retry-After"] = str(error.wait_seconds)
    return response


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Values that have the wrong shape, by their place in the request."""
    fields = {".".join(str(part)[: schemas.MOST_NAME] for part in item["loc"]): item["msg"] for item in error.errors}
    return problem(request, 422, "Invalid", "Some values cannot be used.", fields=fields)


@api.exception_handler(HttpError)
def refused(request: HttpRequest, error: HttpError) -> HttpResponse:
    title = "Sign-in needed" if error.status_code == 401 else "Refused"
    message = "Send a token: Authorization: Bearer qmt-…" if error.status_code == 401 else str(error)
    return problem(request, error.status_code, title, message)
