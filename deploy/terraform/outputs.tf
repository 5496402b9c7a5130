output "repository" {
  description = "Where the image is pushed to: append /eventsv2:TAG."
  value       = "${var.region}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.images.repository_id}"
}

output "instance" {
  description = "Connection name of the database, for the Cloud SQL Auth Proxy."
  value       = google_sql_database_instance.events.connection_name
}

output "database_users" {
  description = "Users of the database that deploy/grants.sql gives the roles of the queue to."
  value       = { for kind, user in google_sql_user.login : kind => user.name }
}

output "emitter" {
  description = "Service account for programs of your own that emit events with the library."
  value       = google_service_account.emitter.email
}

output "webhooks_url" {
  description = "Address before /webhooks/{canvas}/{source}; empty without webhooks."
  value       = local.webhooks == 0 ? "" : google_cloud_run_v2_service.webhooks[0].uri
}
