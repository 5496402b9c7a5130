// Package rehearsal runs the commands of docs/deploy-cloud-run.md that make the schema and its roles, on a Postgres
// whose users have the rights that Cloud SQL gives them, and then the programs, each as the user of its account.
package rehearsal
