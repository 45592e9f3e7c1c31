"""Addresses of the job pages."""

from __future__ import annotations

from django.urls import path

from quartermaster_site.jobs import views

app_name = "jobs"
urlpatterns = [
    path("", views.job_list, name="job-list"),
    path("<int:pk>/", views.job_show, name="job-show"),
    path("<int:pk>/panel/", views.job_show, name="job-panel"),
    path("<int:pk>/cancel/", views.job_cancel, name="job-cancel"),
    path("<int:pk>/retry/", views.job_retry, name="job-retry"),
]
