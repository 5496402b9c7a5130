locals {
  services = toset([
    "artifactregistry.googleapis.com",
    "iam.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "sqladmin.googleapis.com",
  ])

  # What runs waits for an image: without one the first apply makes the rest.
  run      = var.image == "" ? 0 : 1
  webhooks = var.image != "" && var.webhooks ? 1 : 0

  # The accounts that log in to the database without a password.
  logins = toset(["worker", "cron", "emitter"])
}

resource "google_project_service" "used" {
  for_each           = local.services
  service            = each.value
  disable_on_destroy = false
}

resource "google_artifact_registry_repository" "images" {
  repository_id = "events"
  location      = var.region
  format        = "DOCKER"
  description   = "Images of Events V2"
  depends_on    = [google_project_service.used]
}
