// Command target is the HTTP target of docker-compose.yml: it answers every request
// with 204 and prints one line of JSON about it. It runs in a container of the compose
// network and is reached from nowhere else.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// received is one line of output.
type received struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Body string `json:"body"`
}

func main() {
	lines := json.NewEncoder(os.Stdout)
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err == nil {
				err = lines.Encode(received{ID: r.Header.Get("ce-id"), Type: r.Header.Get("ce-type"), Body: string(body)})
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		}),
	}
	fmt.Fprintln(os.Stderr, "target:", server.ListenAndServe())
	os.Exit(1)
}
