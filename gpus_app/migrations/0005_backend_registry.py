"""Backends get ids of their own, provenance, and what a probe found."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def name_by_number(apps: Any, schema_editor: Any) -> None:
    """Pins so far name a backend by its number: it stays its id."""
    for row in apps.get_model("gpus_app", "Backend").objects.all():
        row.slug = str(row.pk)
        row.save(update_fields=["slug"])


class Migration(migrations.Migration):
    dependencies = [("gpus_app", "0004_llama_server_dialect")]

    operations = [
        migrations.AlterModelOptions(name="backend", options={"ordering": ["host_id", "id"]}),
        migrations.AddField("backend", "slug", models.SlugField(max_length=40, default=""), preserve_default=False),
        migrations.AddField("backend", "version", models.CharField(blank=True, default="", max_length=64), False),
        migrations.AddField("backend", "variant", models.CharField(blank=True, default="", max_length=32), False),
        migrations.AddField("backend", "build", models.CharField(blank=True, default="", max_length=64), False),
        migrations.AddField("backend", "edition", models.PositiveIntegerField(default=1)),
        migrations.AddField("backend", "probe", models.JSONField(default=dict)),
        migrations.AddField("backend", "banner_sha256", models.CharField(blank=True, default="", max_length=64), False),
        migrations.AddField("backend", "probed_at", models.DateTimeField(blank=True, null=True)),
        migrations.RunPython(name_by_number, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            "backend", models.UniqueConstraint(fields=("host", "slug"), name="one_backend_per_id")
        ),
    ]
