// Command setmodule gives the repository another module path:
//
//	go run ./test/setmodule github.com/you/eventsv2
//
// It runs at the root of the repository (make module does) and rewrites the modules of
// the repository, the imports, and whatever else names a package by its path: pages,
// the linter's configuration, commands in tests. Other names that look alike, such as
// that of the container image, stay. It may be run again, with another path.
//
// In a git repository that has a path of its own it also merges a later version of the original:
//
//	go run ./test/setmodule take original/main
//
// It leaves the result in the work tree (make take does so), for a merge commit.
//
// Nothing is written before all files have been read and the new path is found good.
package main
