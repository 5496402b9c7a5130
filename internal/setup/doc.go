// Package setup is the code that package service and the programs in cmd/ share: the
// configuration by environment variables, which are read only here; the logger; and the
// exit status of a command line. An invalid value is refused with the name of its variable.
package setup
