package main

import "slices"

// mutants returns all of them.
func mutants() []mutant {
	return slices.Concat(claim, cron, doors, emit, migrations, notify, others, pgstoreends, pgstorepending, pgstorewrites, relay, worker)
}
