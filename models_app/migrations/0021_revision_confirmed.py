from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("models_app", "0020_own_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="revision",
            name="confirmed",
            field=models.JSONField(default=list),
        ),
    ]
