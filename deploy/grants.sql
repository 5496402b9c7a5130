-- Gives the users of a deployment on Google Cloud the roles of the queue. Run it with psql as events_owner, after
-- "eventctl migrate roles":
--
--   psql "$OWNER_URL" --set=project=my-project --file=deploy/grants.sql
--
-- The user of a service account is its address without .gserviceaccount.com.
\set ON_ERROR_STOP on
\set worker events-worker@ :project .iam
\set cron events-cron@ :project .iam
\set emitter events-emitter@ :project .iam

GRANT queue_worker TO :"worker";
GRANT queue_cron TO :"cron";
GRANT queue_emitter TO :"emitter";
