resource "google_sql_database_instance" "events" {
  name                = "events"
  region              = var.region
  database_version    = var.database_version
  deletion_protection = var.deletion_protection
  depends_on          = [google_project_service.used]

  settings {
    tier                        = var.database_tier
    edition                     = "ENTERPRISE"
    availability_type           = var.database_high_availability ? "REGIONAL" : "ZONAL"
    disk_autoresize             = true
    deletion_protection_enabled = var.deletion_protection

    # There are no authorised networks, so only the Cloud SQL connectors get in, with an account that has
    # roles/cloudsql.client.
    connector_enforcement = "REQUIRED"
    ip_configuration {
      ipv4_enabled = true
      ssl_mode     = "ENCRYPTED_ONLY"
    }

    database_flags {
      name  = "cloudsql.iam_authentication"
      value = "on"
    }

    backup_configuration {
      enabled                        = true
      point_in_time_recovery_enabled = true
    }
  }
}

resource "google_sql_database" "events" {
  name     = "events"
  instance = google_sql_database_instance.events.name
}

# They may connect and nothing else until deploy/grants.sql gives them the roles of the queue. The owner of the
# schema, events_owner, has a password, which Terraform does not know: docs/deploy-cloud-run.md makes it.
resource "google_sql_user" "login" {
  for_each = local.logins
  name     = trimsuffix(local.accounts[each.value].email, ".gserviceaccount.com")
  instance = google_sql_database_instance.events.name
  type     = "CLOUD_IAM_SERVICE_ACCOUNT"
}
