package main

import "eventsv2/test/command"

func main() { command.Main(run) }
