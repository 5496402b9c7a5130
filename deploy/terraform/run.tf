locals {
  # The proxy listens on the loopback interface of each instance and encrypts what leaves it. It goes on for as
  # long as Cloud Run lets it after SIGTERM, so that a worker that stops can write the ends of its events.
  proxy_args = ["--auto-iam-authn", "--port=5432", "--min-sigterm-delay=9s", google_sql_database_instance.events.connection_name]

  database = "host=127.0.0.1 port=5432 sslmode=disable dbname=${google_sql_database.events.name}"

  telemetry = { for name, value in { OTEL_EXPORTER_OTLP_ENDPOINT = var.otlp_endpoint } : name => value if value != "" }

  queue = merge(local.telemetry, {
    PUBSUB_PROJECT_ID   = var.project_id
    PUBSUB_TOPIC        = google_pubsub_topic.events.name
    PUBSUB_SUBSCRIPTION = google_pubsub_subscription.workers.name
  })

  worker = merge(local.queue, {
    DATABASE_URL        = "${local.database} user=${google_sql_user.login["worker"].name}"
    HANDLERS_FILE       = "/etc/eventsv2/handlers.yaml"
    WORKER_CONCURRENCY  = tostring(var.worker_concurrency)
    WORKER_GRACE_PERIOD = "8s" # Cloud Run kills what has not ended 10 s after SIGTERM
  })

  cron = merge(local.queue, {
    DATABASE_URL = "${local.database} user=${google_sql_user.login["cron"].name}"
  })
}

resource "google_cloud_run_v2_worker_pool" "worker" {
  count               = local.run
  name                = "events-worker"
  location            = var.region
  deletion_protection = var.deletion_protection
  depends_on          = [google_secret_manager_secret_iam_member.workers_read_handlers, google_secret_manager_secret_iam_member.workers_verify_webhooks]

  scaling {
    manual_instance_count = var.worker_instances
  }

  template {
    service_account = google_service_account.worker.email

    containers {
      name    = "worker"
      image   = var.image
      command = ["/worker"]

      dynamic "env" {
        for_each = local.worker
        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "env" {
        for_each = google_secret_manager_secret.webhook
        content {
          name = env.key
          value_source {
            secret_key_ref {
              secret  = env.value.secret_id
              version = "latest"
            }
          }
        }
      }

      volume_mounts {
        name       = "handlers"
        mount_path = "/etc/eventsv2"
      }

      startup_probe {
        period_seconds    = 5
        failure_threshold = 24
        http_get {
          path = "/healthz"
          port = 8080
        }
      }

      liveness_probe {
        period_seconds    = 5
        failure_threshold = 6
        http_get {
          path = "/healthz"
          port = 8080
        }
      }

      resources {
        limits = {
          cpu    = "1"
          memory = "512Mi"
        }
      }
    }

    containers {
      name  = "cloud-sql-proxy"
      image = var.proxy_image
      args  = local.proxy_args
    }

    volumes {
      name = "handlers"
      secret {
        secret = google_secret_manager_secret.handlers.secret_id
        items {
          version = "latest"
          path    = "handlers.yaml"
        }
      }
    }
  }
}

resource "google_cloud_run_v2_service" "cron" {
  count               = local.run
  name                = "events-cron"
  location            = var.region
  ingress             = "INGRESS_TRAFFIC_INTERNAL_ONLY"
  deletion_protection = var.deletion_protection

  template {
    service_account = google_service_account.cron.email

    # One runs always; during a deployment two do, which is safe.
    scaling {
      min_instance_count = 1
      max_instance_count = 1
    }

    containers {
      name    = "cron"
      image   = var.image
      command = ["/cron"]

      ports {
        container_port = 8080
      }

      dynamic "env" {
        for_each = local.cron
        content {
          name  = env.key
          value = env.value
        }
      }

      startup_probe {
        period_seconds    = 5
        failure_threshold = 24
        http_get {
          path = "/healthz"
        }
      }

      liveness_probe {
        period_seconds    = 5
        failure_threshold = 6
        http_get {
          path = "/healthz"
        }
      }

      # It works without requests, so its processor is not taken away between them.
      resources {
        cpu_idle = false
        limits = {
          cpu    = "1"
          memory = "512Mi"
        }
      }
    }

    containers {
      name  = "cloud-sql-proxy"
      image = var.proxy_image
      args  = local.proxy_args
    }
  }
}

# A worker with an address: it receives webhooks, and runs events like the others.
resource "google_cloud_run_v2_service" "webhooks" {
  count               = local.webhooks
  name                = "events-webhooks"
  location            = var.region
  ingress             = "INGRESS_TRAFFIC_ALL"
  deletion_protection = var.deletion_protection
  depends_on          = [google_secret_manager_secret_iam_member.workers_read_handlers, google_secret_manager_secret_iam_member.workers_verify_webhooks]

  template {
    service_account = google_service_account.worker.email

    scaling {
      min_instance_count = 1
      max_instance_count = 4
    }

    containers {
      name    = "worker"
      image   = var.image
      command = ["/worker"]

      ports {
        container_port = 8080
      }

      dynamic "env" {
        for_each = local.worker
        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "env" {
        for_each = google_secret_manager_secret.webhook
        content {
          name = env.key
          value_source {
            secret_key_ref {
              secret  = env.value.secret_id
              version = "latest"
            }
          }
        }
      }

      volume_mounts {
        name       = "handlers"
        mount_path = "/etc/eventsv2"
      }

      startup_probe {
        period_seconds    = 5
        failure_threshold = 24
        http_get {
          path = "/healthz"
        }
      }

      liveness_probe {
        period_seconds    = 5
        failure_threshold = 6
        http_get {
          path = "/healthz"
        }
      }

      resources {
        cpu_idle = false
        limits = {
          cpu    = "1"
          memory = "512Mi"
        }
      }
    }

    containers {
      name  = "cloud-sql-proxy"
      image = var.proxy_image
      args  = local.proxy_args
    }

    volumes {
      name = "handlers"
      secret {
        secret = google_secret_manager_secret.handlers.secret_id
        items {
          version = "latest"
          path    = "handlers.yaml"
        }
      }
    }
  }
}

# Whoever sends a webhook has no Google account: the worker verifies the signature of the request.
resource "google_cloud_run_v2_service_iam_member" "senders" {
  count    = local.webhooks
  name     = google_cloud_run_v2_service.webhooks[0].name
  location = var.region
  role     = "roles/run.invoker"
  member   = "allUsers"
}

# Run it before each new version: gcloud run jobs execute events-migrations --region=… --wait
resource "google_cloud_run_v2_job" "migrations" {
  count               = local.run
  name                = "events-migrations"
  location            = var.region
  deletion_protection = var.deletion_protection
  depends_on          = [google_secret_manager_secret_iam_member.migrations_read_the_url]

  template {
    template {
      service_account = google_service_account.migrations.email
      max_retries     = 0
      timeout         = "3600s"

      containers {
        image   = var.image
        command = ["/eventctl"]
        args    = ["migrate", "up"]

        env {
          name = "DATABASE_URL"
          value_source {
            secret_key_ref {
              secret  = google_secret_manager_secret.owner_database_url.secret_id
              version = "latest"
            }
          }
        }

        volume_mounts {
          name       = "cloudsql"
          mount_path = "/cloudsql"
        }
      }

      volumes {
        name = "cloudsql"
        cloud_sql_instance {
          instances = [google_sql_database_instance.events.connection_name]
        }
      }
    }
  }
}
