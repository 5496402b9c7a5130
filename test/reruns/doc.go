// Command reruns judges what gotestsum tried again (make test RERUN=2): it reads the events of go test that gotestsum
// has written into the files of a directory, and names each test that failed beside the others and passed when it was
// tried again.
//
// Some failures do not count as mended by that, and it fails for them:
//   - of a package whose tests have all passed, as when goroutines are left behind: the second run is one without tests;
//   - of a package whose process ended during a test: the tests after it were not run;
//   - of a test that draws its input: the second run draws another.
//
// It exits with status 1 if it finds one of these, or nothing to judge.
package main
