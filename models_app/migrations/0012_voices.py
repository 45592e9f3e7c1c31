"""Voices of speech servers."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gpus_app", "0005_backend_registry"),
        ("jobs", "0001_initial"),
        ("models_app", "0011_rule_of_changes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Voice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64)),
                ("form", models.CharField(choices=[("wav", "recording"), ("latents", "latents")], max_length=8)),
                ("ref_text", models.CharField(blank=True, max_length=2000)),
                ("wav", models.BinaryField(default=b"")),
                ("spk", models.BinaryField(default=b"")),
                ("rvq", models.BinaryField(default=b"")),
                ("sha256", models.CharField(max_length=64)),
                ("size_bytes", models.PositiveIntegerField()),
                ("seconds", models.FloatField()),
                ("width", models.PositiveIntegerField(default=0)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="voices", to="gpus_app.host"
                    ),
                ),
            ],
            options={
                "ordering": ["host_id", "name"],
                "constraints": [models.UniqueConstraint(fields=("host", "name"), name="one_voice_per_name")],
            },
        ),
        migrations.CreateModel(
            name="SpeechServer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(blank=True, max_length=300)),
                ("listed", models.JSONField(default=list)),
                ("seen_at", models.DateTimeField(blank=True, null=True)),
                ("problem", models.CharField(blank=True, max_length=500)),
                ("served", models.CharField(blank=True, max_length=40)),
                (
                    "row",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="speech_server", to="models_app.row"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Audition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("request", models.JSONField(default=dict)),
                ("audio", models.BinaryField(default=b"")),
                ("seconds", models.FloatField(default=0.0)),
                ("took_seconds", models.FloatField(default=0.0)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="audition",
                        to="jobs.job",
                    ),
                ),
                (
                    "row",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="auditions", to="models_app.row"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
    ]
