# Copy to terraform.tfvars and write your own values.
project_id = "my-project"
region     = "europe-west1"
# image    = "europe-west1-docker.pkg.dev/my-project/events/eventsv2:v1"
