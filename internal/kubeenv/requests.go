package kubeenv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Request is a request that the apiserver got.
type Request struct {
	Received time.Time
	// User is the sender: system:serviceaccount:NAMESPACE:NAME for service accounts, admin for the administrator.
	User string
	// Agent is the User-Agent header.
	Agent string
	// Verb is RBAC's verb, such as list or watch.
	Verb string
	// The object of the request. Group is empty for the core, Name for collections, and all of them for paths without
	// an object.
	Group, Resource, Subresource, Namespace, Name string
	// LabelSelector and FieldSelector are the query's.
	LabelSelector, FieldSelector string
	// Path is the URL's path, and Query its query.
	Path  string
	Query url.Values
	// Code is the HTTP status of the answer.
	Code int
}

// Requests returns a user's requests in the order of their answers; all if user is empty. It includes watches once they
// have begun. The apiserver records a request just after its answer, so a test may have to ask again.
func (e *Env) Requests(t *testing.T, user string) []Request {
	t.Helper()
	file, err := os.Open(e.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var requests []Request
	begun := map[string]bool{} // by audit ID; a watch is recorded twice, at its begin and end
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the last line may be incomplete
			if errors.Is(err, io.EOF) {
				return requests
			}
			t.Fatal(err)
		}
		if user != "" && !bytes.Contains(line, []byte(user)) {
			continue
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("audit log: %v: %s", err, line)
		}
		if user != "" && event.User.Username != user || begun[event.AuditID] {
			continue
		}
		begun[event.AuditID] = true
		requests = append(requests, event.request())
	}
}

// ServiceAccountUser returns a service account's name in the form of Request.User.
func ServiceAccountUser(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

func (e *Env) auditLog() string { return filepath.Join(e.dir, "audit.log") }

// auditEvent has the fields read from a line of the audit log.
type auditEvent struct {
	AuditID, RequestURI, Verb, UserAgent string
	RequestReceivedTimestamp             time.Time
	User                                 struct{ Username string }
	ObjectRef                            struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus                       struct{ Code int }
}

func (a auditEvent) request() Request {
	r := Request{
		Received: a.RequestReceivedTimestamp, User: a.User.Username, Agent: a.UserAgent, Verb: a.Verb,
		Group: a.ObjectRef.APIGroup, Resource: a.ObjectRef.Resource, Subresource: a.ObjectRef.Subresource,
		Namespace: a.ObjectRef.Namespace, Name: a.ObjectRef.Name, Path: a.RequestURI, Code: a.ResponseStatus.Code,
	}
	if uri, err := url.ParseRequestURI(a.RequestURI); err == nil {
		r.Path, r.Query = uri.Path, uri.Query()
		r.LabelSelector, r.FieldSelector = r.Query.Get("labelSelector"), r.Query.Get("fieldSelector")
	}
	return r
}
