//go:build !linux

package main

import "syscall"

// attributes are never asked for: the program refuses to run here.
func attributes() *syscall.SysProcAttr { return nil }
