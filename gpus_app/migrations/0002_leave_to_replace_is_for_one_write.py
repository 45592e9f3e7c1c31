from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("gpus_app", "0001_initial")]

    operations = [migrations.RemoveField(model_name="host", name="adopt_foreign_file")]
