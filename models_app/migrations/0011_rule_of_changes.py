from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("models_app", "0010_router"),
    ]

    operations = [
        migrations.AddField(
            model_name="change",
            name="rule",
            field=models.PositiveBigIntegerField(default=0),
        ),
    ]
