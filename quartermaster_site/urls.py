"""All addresses. Pages are in `models_app.urls`; sign-in pages are allauth's, with sign-up closed."""

from __future__ import annotations

from allauth.account import urls as account_urls
from allauth.account import views as account_views
from django.urls import include, path

from models_app.api.app import api
from quartermaster_site import health

_ALLAUTH = {
    "account_inactive",
    "account_signup",  # closed: it says so
    "account_reauthenticate",
    "account_change_password",
    "account_set_password",
}
"""Pages of allauth that make sense without outgoing mail."""

handler400 = "quartermaster_site.error_pages.bad_request"
handler403 = "quartermaster_site.error_pages.permission_denied"
handler404 = "quartermaster_site.error_pages.not_found"
handler429 = "quartermaster_site.access.throttling.too_many_attempts"
handler500 = "quartermaster_site.error_pages.server_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("login/", account_views.login, name="account_login"),
    path("logout/", account_views.logout, name="account_logout"),
    path("account/", include([entry for entry in account_urls.urlpatterns if entry.name in _ALLAUTH])),
    path("account/2fa/", include("allauth.mfa.urls")),
    path("account/3rdparty/", include("allauth.socialaccount.urls")),
    path("account/", include("allauth.socialaccount.providers.openid_connect.urls")),
    path("api/v1/", api.urls),
    path("", include("models_app.urls")),
]
