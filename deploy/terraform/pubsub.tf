resource "google_pubsub_topic" "events" {
  name       = var.topic
  depends_on = [google_project_service.used]
}

# Every setting that is not here has to stay unset: with a dead-letter policy, a retry policy, a filter,
# ordering or exactly-once delivery, workers refuse the subscription (docs/configuration.md).
resource "google_pubsub_subscription" "workers" {
  name                       = var.subscription
  topic                      = google_pubsub_topic.events.id
  ack_deadline_seconds       = 60
  message_retention_duration = "604800s"

  # Never. Without the block a subscription that nobody uses is deleted after a month.
  expiration_policy {
    ttl = ""
  }
}
