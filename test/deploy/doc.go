// Package deploy holds the files in deploy/ to the programs and pages that they are about.
package deploy
