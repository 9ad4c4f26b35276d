package app

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
)

// The status page has a row for each role, and the number of tenants that use quotas. Without roles and quotas it has
// neither.
func TestStatusOfRolesAndQuotas(t *testing.T) {
	o := testOptions()
	o.Profile = config.ProfileRecommended
	o.ConfigText = `
flows: { key: ["header:x-tenant"], role: ["header:x-role"] }
roles: { student: {}, staff: { weight: 2, maxInFlight: 7, maxClass: default, quota: { tokens: 1000, window: 1h } } }
`
	r := start(t, o)
	granted(t, r.request(t.Context(), [2]string{"x-tenant", "ada"}, [2]string{"x-role", "staff"}))
	_, page := r.debug("/statusz")
	text := strings.Join(strings.Fields(page), " ")
	for _, want := range []string{
		"quotas 1 tenants of which the use of a quota is known", "role weight most in flight class highest class quota",
		"staff 2 7 - default 1000 tokens in 1h", "student 1 - - - -",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page:\n%s", want, page)
		}
	}
	if _, page := start(t, testOptions()).debug("/statusz"); strings.Contains(page, "role  weight") || strings.Contains(page, "quotas") {
		t.Errorf("without roles:\n%s", page)
	}
}
