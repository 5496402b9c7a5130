package main

import "eventsv2/test/attack/harness"

func main() { harness.Main(run) }
