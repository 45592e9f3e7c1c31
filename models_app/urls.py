"""Addresses of all pages. Their names read `models:noun-verb`."""

from __future__ import annotations

from django.urls import include, path

from models_app.views import (
    components,
    config,
    fits,
    host_devices,
    host_settings,
    host_watching,
    hosts,
    issues,
    model_compare,
    model_detail,
    model_edit,
    model_files,
    model_list,
    overview,
    setup,
)

pages = [
    path("", overview.overview, name="overview"),
    path("setup/", setup.setup, name="setup"),
    path("setup/<slug:name>/", setup.setup_step, name="setup-step"),
    path("models/", model_list.model_list, name="model-list"),
    path("models/<int:pk>/", model_detail.model_show, name="model-show"),
    path("models/<int:pk>/row/", model_list.model_row, name="model-row"),
    path("models/<int:pk>/preview/", model_detail.model_preview, name="model-preview"),
    path("models/<int:pk>/edit/", model_edit.model_edit, name="model-edit"),
    path("models/<int:pk>/edit/preview/", model_edit.model_edit_preview, name="model-edit-preview"),
    path("models/<int:pk>/reset/", model_edit.model_reset, name="model-reset"),
    path("models/<int:pk>/compare/", model_compare.model_compare, name="model-compare"),
    path("models/<int:pk>/files/", model_files.model_files, name="model-files"),
    path("models/<int:pk>/files/read/", model_files.model_reread, name="model-reread"),
    path("models/<int:pk>/forget/", model_files.model_forget, name="model-forget"),
    path("components/", components.component_list, name="component-list"),
    path("components/<int:pk>/pin/", components.component_pin, name="component-pin"),
    path("issues/", issues.issue_list, name="issue-list"),
    path("hosts/", hosts.host_list, name="host-list"),
    path("hosts/<slug:slug>/", hosts.host_show, name="host-show"),
    path("hosts/<slug:slug>/fits/", fits.host_fits, name="host-fits"),
    path("hosts/<slug:slug>/card/", overview.card, name="host-card"),
    path("hosts/<slug:slug>/scan/", hosts.host_scan, name="host-scan"),
    path("hosts/<slug:slug>/probe/", hosts.host_probe, name="host-probe"),
    path("hosts/<slug:slug>/plan/", hosts.host_plan, name="host-plan"),
    path("hosts/<slug:slug>/settings/memory/", host_settings.host_memory, name="host-memory"),
    path("hosts/<slug:slug>/settings/gpu/", host_devices.host_devices, name="host-gpu"),
    path("hosts/<slug:slug>/folders/", host_settings.host_folders, name="host-folders"),
    path("hosts/<slug:slug>/folders/watching/", host_watching.host_watching, name="host-watching"),
    path("hosts/<slug:slug>/folders/add/", host_settings.root_add, name="root-add"),
    path("hosts/<slug:slug>/folders/<int:pk>/remove/", host_settings.root_remove, name="root-remove"),
    path("config/", config.config_home, name="config-home"),
    path("config/<slug:slug>/", config.config_show, name="config-show"),
    path("config/<slug:slug>/render/", config.config_render, name="config-render"),
    path("config/<slug:slug>/target/", config.config_target, name="config-target"),
    path("config/<slug:slug>/<int:number>/download/", config.config_download, name="config-download"),
    path("config/<slug:slug>/<int:number>/write/", config.config_write, name="config-write"),
]

urlpatterns = [
    path("", include((pages, "models"))),
    path("jobs/", include("quartermaster_site.jobs.urls")),
    path("account/", include("quartermaster_site.access.urls")),
]
