package dashboard

import "time"

// SetFormTimeout sets how long forms may take to arrive, before the first request.
func (h *Handler) SetFormTimeout(within time.Duration) {
	h.pages.logins.within, h.pages.forms.within = within, within
}
