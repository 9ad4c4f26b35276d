package doctor

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/golden"
)

const page = "../../docs/doctor.md"

// The page has the checks of the code, in tables between comments.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, checks := range map[string][]Check{"envoy": envoyChecks(), "cluster": clusterChecks()} {
		begin, end := fmt.Sprintf("<!-- checks: %s -->\n", name), "<!-- end of checks -->\n"
		before, rest, ok := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s lacks %q and %q", page, begin, end)
		}
		want = before + begin + table(checks) + end + after
	}
	golden.Check(t, page, want)
}

func table(checks []Check) string {
	var b strings.Builder
	b.WriteString("| check | found | why it matters | remedy | harm shown by |\n|---|---|---|---|---|\n")
	for _, c := range checks {
		var tests []string
		for _, name := range c.Harm {
			tests = append(tests, "`"+name+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.ID, c.Title, c.Why, c.Fix, strings.Join(tests, ", "))
	}
	return b.String()
}

// Each check has its own name, and no empty text.
func TestChecks(t *testing.T) {
	id := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, c := range Checks() {
		if !id.MatchString(c.ID) || seen[c.ID] {
			t.Errorf("%q is no name, or is there twice", c.ID)
		}
		seen[c.ID] = true
		if c.Title == "" || !strings.HasSuffix(c.Why, ".") || !strings.HasSuffix(c.Fix, ".") || len(c.Harm) == 0 || (c.envoy == nil) == (c.cluster == nil) {
			t.Errorf("%s lacks something: %+v", c.ID, c)
		}
	}
}
