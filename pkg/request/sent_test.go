package request

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sent is a request sent by a test.
type sent struct {
	cfg       Config // empty: DefaultConfig
	headers   []string
	end       bool
	mode      BodyMode
	askUsage  bool
	context   told
	subset    Subset
	envoyRead *EnvoyRead
	body      string // read if it is needed
	part      bool   // Envoy shows no more of it
	now       time.Time
	lists     listed // the models of the endpoints
	needed    bool   // the body was, after read
}

// headers returns names and values.
func headers(pairs ...string) []string { return pairs }

// chat returns the headers of a chat completion, and further ones.
func chat(pairs ...string) []string {
	return append([]string{":method", "POST", ":path", "/v1/chat/completions", "content-type", "application/json"}, pairs...)
}

// told is the data plane's information: metadata by namespace/path, and attributes by name.
type told map[string]string

func (t told) Metadata(namespace string, path []string) string {
	for _, name := range path {
		namespace += "/" + name
	}
	return t[namespace]
}

func (t told) Attribute(name string) string { return t[name] }

type listed []string

func (l listed) Lists(model string) bool { return slices.Contains(l, model) }

// read reads the headers, and the body if it is needed.
func (s *sent) read() (*Request, error) {
	if s.cfg.FlowKey == nil && s.cfg.Levels == nil {
		s.cfg = DefaultConfig()
	}
	if err := s.cfg.Validate(); err != nil {
		panic(err)
	}
	r := NewRules(&s.cfg)
	var h Headers
	for i := 0; i < len(s.headers); i += 2 {
		h.Add(r, s.headers[i], []byte(s.headers[i+1]))
	}
	q := new(Request)
	var err error
	s.needed, err = q.ReadHeaders(r, &h, &Input{
		End: s.end, Mode: s.mode, AskUsage: s.askUsage, Context: s.context, Subset: s.subset, EnvoyRead: s.envoyRead,
		Now: s.now, Models: s.lists, Draw: rand.New(rand.NewPCG(1, 2)),
	})
	if err == nil && s.needed {
		err = q.ReadBody([]byte(s.body), !s.part)
	}
	return q, err
}

// must is read for a request that must not be refused.
func (s *sent) must(t *testing.T) *Request {
	t.Helper()
	q, err := s.read()
	if err != nil {
		t.Fatalf("%q: %v", s.headers, err)
	}
	return q
}
