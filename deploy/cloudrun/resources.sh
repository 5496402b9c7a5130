#!/usr/bin/env bash
# Makes with gcloud what deploy/terraform makes, but for what runs: APIs, topic and subscription, service accounts
# with their roles, the database and the secrets. It needs PROJECT_ID and REGION. A command fails when its resource
# is there already, so after an error continue with the command that failed.
set -euo pipefail
: "${PROJECT_ID:?}" "${REGION:?}"

gcloud services enable --project="$PROJECT_ID" artifactregistry.googleapis.com iam.googleapis.com pubsub.googleapis.com run.googleapis.com secretmanager.googleapis.com sqladmin.googleapis.com

gcloud artifacts repositories create events --project="$PROJECT_ID" --location="$REGION" --repository-format=docker

# The notifications. Workers refuse a subscription with other settings (docs/configuration.md).
gcloud pubsub topics create events-v2 --project="$PROJECT_ID"
gcloud pubsub subscriptions create events-v2-workers --project="$PROJECT_ID" --topic=events-v2 --ack-deadline=60 --message-retention-duration=7d --expiration-period=never

# One account per kind of program, with the roles that it needs.
gcloud iam service-accounts create events-worker --project="$PROJECT_ID" --display-name="Events V2: workers"
gcloud iam service-accounts create events-cron --project="$PROJECT_ID" --display-name="Events V2: cron"
gcloud iam service-accounts create events-emitter --project="$PROJECT_ID" --display-name="Events V2: programs that emit events"
gcloud iam service-accounts create events-migrations --project="$PROJECT_ID" --display-name="Events V2: migrations of the schema"

for account in events-worker events-cron events-emitter events-migrations; do
  gcloud projects add-iam-policy-binding "$PROJECT_ID" --member="serviceAccount:$account@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/cloudsql.client --condition=None
done
for account in events-worker events-cron events-emitter; do
  gcloud projects add-iam-policy-binding "$PROJECT_ID" --member="serviceAccount:$account@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/cloudsql.instanceUser --condition=None
  gcloud pubsub topics add-iam-policy-binding events-v2 --project="$PROJECT_ID" --member="serviceAccount:$account@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/pubsub.publisher
done
gcloud pubsub topics add-iam-policy-binding events-v2 --project="$PROJECT_ID" --member="serviceAccount:events-worker@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/pubsub.viewer
gcloud pubsub subscriptions add-iam-policy-binding events-v2-workers --project="$PROJECT_ID" --member="serviceAccount:events-worker@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/pubsub.subscriber
gcloud pubsub subscriptions add-iam-policy-binding events-v2-workers --project="$PROJECT_ID" --member="serviceAccount:events-worker@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/pubsub.viewer

# The database. Only the Cloud SQL connectors get in, and service accounts log in without a password.
gcloud sql instances create events --project="$PROJECT_ID" --region="$REGION" --database-version=POSTGRES_17 --edition=enterprise --tier=db-custom-2-7680 --availability-type=regional --database-flags=cloudsql.iam_authentication=on --connector-enforcement=REQUIRED --ssl-mode=ENCRYPTED_ONLY --storage-auto-increase --backup --enable-point-in-time-recovery --deletion-protection
gcloud sql databases create events --project="$PROJECT_ID" --instance=events
for account in events-worker events-cron events-emitter; do
  gcloud sql users create "$account@$PROJECT_ID.iam" --project="$PROJECT_ID" --instance=events --type=cloud_iam_service_account
done

# The secrets, still without a value.
gcloud secrets create events-owner-database-url --project="$PROJECT_ID" --replication-policy=automatic
gcloud secrets create events-handlers --project="$PROJECT_ID" --replication-policy=automatic
gcloud secrets add-iam-policy-binding events-owner-database-url --project="$PROJECT_ID" --member="serviceAccount:events-migrations@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/secretmanager.secretAccessor
gcloud secrets add-iam-policy-binding events-handlers --project="$PROJECT_ID" --member="serviceAccount:events-worker@$PROJECT_ID.iam.gserviceaccount.com" --role=roles/secretmanager.secretAccessor
