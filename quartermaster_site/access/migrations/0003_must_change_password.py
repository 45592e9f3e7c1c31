from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0002_custom_args"),
    ]

    operations = [
        migrations.AddField(
            model_name="account",
            name="must_change_password",
            field=models.BooleanField(default=False),
        ),
    ]
