"""Addresses of the account pages."""

from __future__ import annotations

from django.urls import path

from quartermaster_site.access import views

app_name = "access"
urlpatterns = [path("", views.account, name="account")]
