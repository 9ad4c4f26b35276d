package quota

import (
	"testing"
	"time"
)

// An account whose window is empty begins with the window that it is asked in next, so it is forgotten by that one's end.
func TestAnEmptyWindowIsShortenedAgain(t *testing.T) {
	a, hour := New(10), Limit{Tokens: 100, Window: time.Hour}
	asks(t, a, 0, "ada", hour, 1, 0)
	asks(t, a, time.Hour, "ada", perMinute(100), 1, 0)
	asks(t, a, time.Hour+2*time.Minute, "bob", perMinute(100), 1, 0)
	if a.Len() != 1 {
		t.Errorf("%d accounts, want only bob's", a.Len())
	}
}

// At the very end of its window an account is empty, and forgotten, though another one that asked before is not.
func TestForgottenAtTheEnd(t *testing.T) {
	a := New(10)
	asks(t, a, 0, "slow", Limit{Tokens: 100, Window: time.Hour}, 1, 0)
	asks(t, a, 0, "ada", perMinute(100), 1, 0)
	asks(t, a, time.Minute, "bob", perMinute(100), 1, 0)
	if a.Len() != 2 {
		t.Errorf("%d accounts, want those of slow and bob", a.Len())
	}
}

// A tenant's own quota goes before that of its role, and a tenant without either has none.
func TestLimitOfATenant(t *testing.T) {
	c := Config{Tenants: map[string]Limit{"ada": perMinute(7), "bob": {}}, Roles: map[string]Limit{"staff": perMinute(3)}}
	for _, test := range []struct {
		tenant, role string
		want         Limit
	}{
		{"ada", "staff", perMinute(7)}, {"ada", "", perMinute(7)}, {"bob", "staff", perMinute(3)}, {"cyd", "staff", perMinute(3)}, {"cyd", "", Limit{}},
	} {
		if got := c.Limit(test.tenant, test.role); got != test.want {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}
