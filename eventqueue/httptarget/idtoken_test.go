package httptarget

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/metadata"
)

// TestMetadataServerMayStartLate: the library looks once, and that of a new pod of GKE
// begins to answer some seconds later. It has a process of its own: the library remembers its look, and may leave a
// connection open to whatever answers at the address of metadata servers.
func TestMetadataServerMayStartLate(t *testing.T) {
	if os.Getenv(alone) == "" {
		t.Parallel()
		cmd := exec.CommandContext(testContext(t), os.Args[0], "-test.run=^TestMetadataServerMayStartLate$")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("GCE_METADATA_HOST", "")
	if metadata.OnGCEWithContext(testContext(t)) {
		t.Log("this machine has a metadata server, so that the library finds it at once")
	}
	token := tokenUntil(time.Now().Add(time.Hour), "late")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/identity") && r.URL.Query().Get("audience") == "https://shop.example.com" && r.Header.Get("Metadata-Flavor") == "Google" {
			_, _ = io.WriteString(w, token)
		}
	}))
	defer server.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	tokens := NewIDTokens()
	if got, err := tokens.Token(testContext(t), "https://shop.example.com"); err != nil || got != token {
		t.Errorf("got %q, %v", got, err)
	}
}
