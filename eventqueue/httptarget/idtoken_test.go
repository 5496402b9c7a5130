package httptarget

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/metadata"
)

// TestAMetadataServerThatComesLate: the library looks once, and that of a new pod of GKE
// begins to answer some seconds later.
func TestAMetadataServerThatComesLate(t *testing.T) {
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
