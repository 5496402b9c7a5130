package services

import (
	"fmt"
	"os"
	"syscall"
)

const (
	// sharedMemory is where Linux keeps files in memory.
	sharedMemory = "/dev/shm"

	// plentyOfMemory is many times what the databases of the tests need at once.
	plentyOfMemory = 8 << 30
)

// roomInMemory is a directory in memory that has plenty of room, or empty.
func roomInMemory() string {
	if !openToAll(sharedMemory) || spaceLeft(sharedMemory) < plentyOfMemory || memoryLeft("/proc/meminfo") < plentyOfMemory {
		return ""
	}
	return sharedMemory
}

// openToAll reports whether every user may make files in a directory.
func openToAll(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && info.Mode().Perm()&0o003 == 0o003
}

// spaceLeft is how many bytes a directory may still take; 0 where that cannot be said.
func spaceLeft(dir string) uint64 {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0
	}
	return stat.Bavail * uint64(stat.Bsize) //nolint:gosec // a block has a size
}

// memoryLeft is how many bytes of memory are free or can be made so; 0 where that cannot
// be said.
func memoryLeft(meminfo string) uint64 {
	file, err := os.Open(meminfo)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }() // it was only read
	for {
		var name string
		var kilobytes uint64
		if _, err := fmt.Fscanf(file, "%s %d kB\n", &name, &kilobytes); err != nil {
			return 0
		}
		if name == "MemAvailable:" {
			return kilobytes << 10
		}
	}
}
