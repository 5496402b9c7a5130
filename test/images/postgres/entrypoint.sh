#!/bin/sh
# Starts Postgres the way that users of the official image rely on: a cluster is
# made in PGDATA on the first start, with POSTGRES_USER, POSTGRES_PASSWORD and
# POSTGRES_DB; arguments that begin with "-" go to the server; any other command
# is run as it is.
set -eu

case ${1:-postgres} in
  -*) set -- postgres "$@" ;;
  postgres) ;;
  *) exec "$@" ;;
esac

create_cluster() {
  : "${POSTGRES_USER:=postgres}"
  : "${POSTGRES_DB:=$POSTGRES_USER}"
  : "${POSTGRES_HOST_AUTH_METHOD:=scram-sha-256}"
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
    echo "error: POSTGRES_PASSWORD is not set: set it, or set POSTGRES_HOST_AUTH_METHOD=trust to let everybody in" >&2
    exit 1
  fi
  pwfile=$(mktemp)
  # A password file must have a line, also where no password is asked for.
  printf '%s\n' "${POSTGRES_PASSWORD:-unused}" >"$pwfile"
  initdb --username="$POSTGRES_USER" --pwfile="$pwfile" --encoding=UTF8 --auth-local=trust
  rm -f "$pwfile"
  echo "host all all all $POSTGRES_HOST_AUTH_METHOD" >>"$PGDATA/pg_hba.conf"

  # On the socket only: nobody outside may take the half-made server for ready.
  pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
  if [ "$POSTGRES_DB" != postgres ]; then
    psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d postgres --set db="$POSTGRES_DB" <<-'SQL'
	CREATE DATABASE :"db";
	SQL
  fi
  for f in /docker-entrypoint-initdb.d/*.sql; do
    if [ -f "$f" ]; then psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f "$f"; fi
  done
  pg_ctl -D "$PGDATA" -m fast -w stop
  echo "PostgreSQL init process complete; ready for start up."
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then create_cluster; fi
shift
exec postgres -c listen_addresses='*' "$@"
