# One account per kind of program, each with the roles that it needs and on the resource that it needs them for.
resource "google_service_account" "worker" {
  account_id   = "events-worker"
  display_name = "Events V2: workers"
  depends_on   = [google_project_service.used]
}

resource "google_service_account" "cron" {
  account_id   = "events-cron"
  display_name = "Events V2: cron"
  depends_on   = [google_project_service.used]
}

resource "google_service_account" "emitter" {
  account_id   = "events-emitter"
  display_name = "Events V2: programs that emit events"
  depends_on   = [google_project_service.used]
}

resource "google_service_account" "migrations" {
  account_id   = "events-migrations"
  display_name = "Events V2: migrations of the schema"
  depends_on   = [google_project_service.used]
}

locals {
  accounts = {
    worker     = google_service_account.worker
    cron       = google_service_account.cron
    emitter    = google_service_account.emitter
    migrations = google_service_account.migrations
  }
}

# All four connect to the database. Three log in as themselves; migrations log in with a password.
resource "google_project_iam_member" "connects" {
  for_each = local.accounts
  project  = var.project_id
  role     = "roles/cloudsql.client"
  member   = each.value.member
}

resource "google_project_iam_member" "logs_in" {
  for_each = local.logins
  project  = var.project_id
  role     = "roles/cloudsql.instanceUser"
  member   = local.accounts[each.value].member
}

# All who emit publish: workers for the children of their events, cron for its slots and as the relay.
resource "google_pubsub_topic_iam_member" "publishes" {
  for_each = local.logins
  topic    = google_pubsub_topic.events.id
  role     = "roles/pubsub.publisher"
  member   = local.accounts[each.value].member
}

# A worker also reads the settings of topic and subscription, and refuses those that would lose events.
resource "google_pubsub_topic_iam_member" "worker_reads" {
  topic  = google_pubsub_topic.events.id
  role   = "roles/pubsub.viewer"
  member = google_service_account.worker.member
}

resource "google_pubsub_subscription_iam_member" "worker_pulls" {
  for_each     = toset(["roles/pubsub.subscriber", "roles/pubsub.viewer"])
  subscription = google_pubsub_subscription.workers.id
  role         = each.value
  member       = google_service_account.worker.member
}

# On GKE the Kubernetes accounts of deploy/gke act as these (Workload Identity).
resource "google_service_account_iam_member" "gke" {
  for_each           = { for kind, account in local.accounts : kind => account if var.gke_namespace != "" }
  service_account_id = each.value.name
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${var.project_id}.svc.id.goog[${var.gke_namespace}/${each.value.account_id}]"
}
