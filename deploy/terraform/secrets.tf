# The secrets without their values, so that these are not in the state. You add them: docs/deploy-cloud-run.md.
resource "google_secret_manager_secret" "owner_database_url" {
  secret_id  = "events-owner-database-url"
  depends_on = [google_project_service.used]
  replication {
    auto {}
  }
}

resource "google_secret_manager_secret" "handlers" {
  secret_id  = "events-handlers"
  depends_on = [google_project_service.used]
  replication {
    auto {}
  }
}

resource "google_secret_manager_secret" "webhook" {
  for_each   = var.webhook_secrets
  secret_id  = "events-${lower(replace(each.value, "_", "-"))}"
  depends_on = [google_project_service.used]
  replication {
    auto {}
  }
}

resource "google_secret_manager_secret_iam_member" "migrations_read_the_url" {
  secret_id = google_secret_manager_secret.owner_database_url.id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.migrations.member
}

resource "google_secret_manager_secret_iam_member" "workers_read_handlers" {
  secret_id = google_secret_manager_secret.handlers.id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.worker.member
}

resource "google_secret_manager_secret_iam_member" "workers_verify_webhooks" {
  for_each  = google_secret_manager_secret.webhook
  secret_id = each.value.id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.worker.member
}
