package extproc

import "testing"

// Requests that show a configuration that Weir cannot follow are warned of once.
func TestWarningsOfRequests(t *testing.T) {
	usage := func(c *Config) { c.Cost, c.IncludeUsage = CostTokens, true }
	tenants := func(c *Config) { c.FlowKey = []string{"header:x-tenant"} }
	const hidden, part, ask = "does not let the body be read", "is not replaced by its target", "cannot ask for the usage"
	for _, test := range []struct {
		name, mode string
		change     func(*Config)
		headers    []string
		body       string
		warned     string // "" is nothing
	}{
		{"no body is shown", "NONE/NONE", nil, nil, "", hidden},
		{"not before the destination", "STREAMED/NONE", nil, nil, "", hidden},
		{"no body is needed", "NONE/NONE", nil, []string{"x-gateway-model-name", "m"}, "", ""},
		{"a part", "BUFFERED_PARTIAL/NONE", rewriteM, []string{"x-gateway-model-name", "m"}, `{"mod`, part},
		{"a part that is not to be rewritten", "BUFFERED_PARTIAL/NONE", rewriteM, []string{"x-gateway-model-name", "other"}, "", ""},
		{"no answer is shown", "BUFFERED/NONE", usage, []string{"x-gateway-model-name", "m"}, "", ask},
		{"no request is shown", "STREAMED/STREAMED", usage, []string{"x-gateway-model-name", "m"}, "", ask},
		{"both are shown", "BUFFERED/STREAMED", usage, []string{"x-gateway-model-name", "m"}, "", ""},
		{"nothing is asked for", "BUFFERED/NONE", inTokens, []string{"x-gateway-model-name", "m"}, "", ""},
		{
			"a tenant that is not read", "NONE/NONE", tenants,
			[]string{"x-llm-d-inference-fairness-id", "a"},
			"",
			`name it in flows.key" "header"="x-llm-d-inference-fairness-id" "key"="flows.key" "entry"="header:x-llm-d-inference-fairness-id"`,
		},
		{
			"an objective that is not read", "NONE/NONE", tenants,
			[]string{"x-gateway-inference-objective", "a"},
			"",
			`name it in criticality.objectiveHeaders" "header"="x-gateway-inference-objective" "key"="criticality.objectiveHeaders" ` +
				`"entry"="x-gateway-inference-objective"`,
		},
	} {
		inBubble(t, test.mode, test.change, func(c *conversation) {
			for range 2 {
				one := c.open(test.mode)
				one.say(chat(test.headers...))
				if test.body != "" {
					one.say(requestBodyOf(test.body, false))
				}
				one.heard()
				one.end()
			}
			warnings := c.logged.has("WARNING")
			if test.warned == "" && warnings != 0 || test.warned != "" && c.logged.has(test.warned) != 1 {
				t.Errorf("%s: %q", test.name, c.logged.lines)
			}
		})
	}
}
