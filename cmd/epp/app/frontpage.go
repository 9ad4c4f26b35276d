package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weir-epp/weir/internal/frontpage"
	"github.com/weir-epp/weir/internal/status"
)

// frontPage writes the state of this epp as an HTML page, with the index of the port. It takes the parameters of
// /debug/status, and refresh.
func (a *App) frontPage(w http.ResponseWriter, r *http.Request) {
	page, err := pageAsked(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page.Document = a.statusDocument(&page.Query, time.Now())
	for _, p := range a.debugPages() {
		page.Index = append(page.Index, p.entry)
	}
	text, err := page.Render()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", frontpage.Policy)
	h.Set("Referrer-Policy", "no-referrer")
	if page.Refresh > 0 {
		h.Set("Refresh", strconv.Itoa(page.Refresh))
	}
	_, _ = w.Write(text) // an error: the reader is gone
}

// pageAsked reads the parameters of a page. An empty one counts as missing, since a form sends its empty fields.
func pageAsked(v url.Values) (*frontpage.Page, error) {
	page := &frontpage.Page{Refresh: frontpage.Refresh}
	var errs [2]error
	if text := v.Get("refresh"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > frontpage.MostRefresh {
			errs[0] = fmt.Errorf("refresh: must be from 0 to %d", frontpage.MostRefresh)
		}
		page.Refresh = n
	}
	v.Del("refresh")
	page.Query, errs[1] = status.ParseQueryFrom(frontpage.DefaultQuery(), v)
	return page, errors.Join(errs[:]...)
}
