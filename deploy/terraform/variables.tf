variable "project_id" {
  description = "Google Cloud project that holds everything."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "Give the id of a project, such as my-project; neither its name nor its number."
  }
}

variable "region" {
  description = "Region of the database, the images and Cloud Run."
  type        = string
  default     = "europe-west1"
  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "Give a region, such as europe-west1; not a zone."
  }
}

variable "image" {
  description = "Image of the programs, with its tag or digest. Empty: make everything but what runs it, so that the image can be pushed and the database prepared first."
  type        = string
  default     = ""
  validation {
    condition     = var.image == "" || can(regex("[:@][A-Za-z0-9._:-]+$", var.image))
    error_message = "Give the image with a tag or a digest, such as europe-west1-docker.pkg.dev/my-project/events/eventsv2:v1."
  }
}

variable "proxy_image" {
  description = "Image of the Cloud SQL Auth Proxy, through which worker and cron log in to the database as their service accounts."
  type        = string
  default     = "gcr.io/cloud-sql-connectors/cloud-sql-proxy:2.21.2"
}

variable "topic" {
  description = "Id of the topic of the notifications."
  type        = string
  default     = "events-v2"
}

variable "subscription" {
  description = "Id of the subscription that all workers share."
  type        = string
  default     = "events-v2-workers"
}

variable "database_version" {
  description = "Version of Postgres in Cloud SQL."
  type        = string
  default     = "POSTGRES_17"
  validation {
    condition     = can(regex("^POSTGRES_1[5-9]$", var.database_version))
    error_message = "The queue needs Postgres 15 or newer, such as POSTGRES_17."
  }
}

variable "database_tier" {
  description = "Machine type of the database."
  type        = string
  default     = "db-custom-2-7680"
}

variable "database_high_availability" {
  description = "Run a standby of the database in a second zone."
  type        = bool
  default     = true
}

variable "deletion_protection" {
  description = "Keep Terraform from deleting the database and what runs."
  type        = bool
  default     = true
}

variable "worker_instances" {
  description = "How many workers run. Cloud Run does not scale a worker pool by itself."
  type        = number
  default     = 2
  validation {
    condition     = var.worker_instances >= 0 && floor(var.worker_instances) == var.worker_instances
    error_message = "Give a whole number; 0 stops all workers."
  }
}

variable "worker_concurrency" {
  description = "How many events a worker runs at once, at most."
  type        = number
  default     = 500
  validation {
    condition     = var.worker_concurrency >= 1
    error_message = "A worker runs at least one event at once."
  }
}

variable "webhooks" {
  description = "Serve the sources of webhooks of the handlers file to the internet."
  type        = bool
  default     = false
}

variable "webhook_secrets" {
  description = "Environment variables that the sources of webhooks in the handlers file name, such as GITHUB_SECRET. Each gets a secret, whose value you add."
  type        = set(string)
  default     = []
  validation {
    condition     = alltrue([for name in var.webhook_secrets : can(regex("^[A-Z][A-Z0-9_]*$", name))])
    error_message = "Give the names of environment variables, such as GITHUB_SECRET."
  }
}

variable "otlp_endpoint" {
  description = "OpenTelemetry collector that gets metrics and traces, such as http://collector:4318. Empty: nothing is measured."
  type        = string
  default     = ""
}

variable "gke_namespace" {
  description = "Namespace of a GKE cluster of this project whose Kubernetes service accounts may act as those made here. Empty: none."
  type        = string
  default     = ""
}
