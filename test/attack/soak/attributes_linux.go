package main

import "syscall"

// attributes make a child die with this process, however that ends. A session of
// its own keeps what a terminal sends away from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
