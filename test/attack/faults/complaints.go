package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// complaint is a line that a program logs as an error, or what Go says of a program that dies.
var complaint = regexp.MustCompile(`"(severity|level)":"(?i:error|critical|alert|emergency|fatal|panic|dpanic)"|^panic: |^fatal error: |^embed: `)

// Bounds of what is shown of logs, which are often lost with the machine.
const (
	maxComplaints   = 2 // of each program
	complaintLength = 400
)

// complaints are the last errors in each log of a directory, a line each.
func complaints(dir string) (all []string) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil // the directory's name is no pattern: there is nothing to show
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		var of []string
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); complaint.MatchString(line) {
				of = append(of, fmt.Sprintf("%s: %.*s", filepath.Base(path), complaintLength, line))
			}
		}
		all = append(all, of[max(len(of)-maxComplaints, 0):]...)
	}
	return all
}
