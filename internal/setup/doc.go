// Package setup is what the programs in cmd/ share, and package service: the variables
// of the environment, which are read in this one place; the logger; and the exit status of
// a command line. What makes no sense is refused with the name of its variable.
package setup
