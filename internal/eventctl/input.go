package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// input is a file that can be read twice.
type input struct {
	*os.File
	name string
}

// openInput opens a regular file. It copies anything else (standard input, a pipe) to a
// temporary file that no other user can open.
func (p *program) openInput(ctx context.Context, path string) (*input, error) {
	if path == "-" {
		return spool(ctx, p.stdin, "standard input")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, badInput(fmt.Errorf("--file: %w", err))
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close() // the first error says what went wrong
		return nil, failed(fmt.Errorf("--file: %w", err))
	}
	if info.Mode().IsRegular() || info.IsDir() { // the error of reading a directory says what is wrong
		return &input{file, path}, nil
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	return spool(ctx, file, path)
}

// spool copies a stream to a temporary file. It removes the name of the file before it
// fills it, so that the file disappears with the process. A read from a terminal or a pipe
// cannot be interrupted: if ctx ends, spool abandons the copy, since the process is about to
// end.
func spool(ctx context.Context, from io.Reader, name string) (*input, error) {
	file, err := os.CreateTemp("", "eventctl-*.ndjson")
	if err != nil {
		return nil, failed(fmt.Errorf("make a temporary file for %s: %w", name, err))
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close() // the first error says what went wrong
		return nil, failed(fmt.Errorf("unlink the temporary file for %s: %w", name, err))
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(file, from)
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		return nil, failed(errors.New("interrupted: nothing was emitted"))
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close() // the first error says what went wrong
		return nil, failed(fmt.Errorf("copy %s to a temporary file: %w", name, err))
	}
	return &input{file, name}, nil
}
