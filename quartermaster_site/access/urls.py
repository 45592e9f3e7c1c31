"""Addresses of the account pages, of users and of the audit log."""

from __future__ import annotations

from django.urls import path

from quartermaster_site.access import audit_views, group_views, network_views, people_views, views

app_name = "access"
urlpatterns = [
    path("account/", views.account, name="account"),
    path("account/sessions/end/", views.session_end, name="session-end"),
    path("account/tokens/", views.token_create, name="token-create"),
    path("account/tokens/<int:pk>/revoke/", views.token_revoke, name="token-revoke"),
    path("access/users/", people_views.person_list, name="person-list"),
    path("access/users/<int:pk>/", people_views.person_edit, name="person-edit"),
    path("access/users/<int:pk>/password/", people_views.person_password, name="person-password"),
    path(
        "access/users/<int:pk>/sessions/<int:session>/end/", people_views.person_session_end, name="person-session-end"
    ),
    path("access/groups/", group_views.group_list, name="group-list"),
    path("access/groups/<int:pk>/", group_views.group_edit, name="group-edit"),
    path("access/groups/<int:pk>/delete/", group_views.group_delete, name="group-delete"),
    path("access/network/", network_views.network, name="network"),
    path("audit/", audit_views.audit_log, name="audit-log"),
    path("audit/export/", audit_views.audit_export, name="audit-export"),
]
