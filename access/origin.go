package access

import (
	"fmt"
	"net/http"
)

// OtherOrigin says why a request was refused that net/http.CrossOriginProtection refuses, and what to do.
func OtherOrigin(r *http.Request) string {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return fmt.Sprintf("The browser says that a page of another address sent this (%s): open the pages and send their forms under one address.", site)
	}
	return fmt.Sprintf("The browser was at %s, and this arrived here for the host %s. If a proxy is between them, let the proxy pass Host on (in nginx: proxy_set_header Host $host;).",
		r.Header.Get("Origin"), r.Host)
}
