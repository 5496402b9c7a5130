// Command version prints the build of itself.
package main

import (
	"fmt"

	"eventsv2/internal/buildinfo"
)

func main() { fmt.Println(buildinfo.Version()) }
