from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('models_app', '0019_key_environment'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='is_own',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='keypolicy',
            name='self_service',
            field=models.BooleanField(default=False),
        ),
    ]
