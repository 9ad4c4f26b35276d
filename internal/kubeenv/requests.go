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
	// Verb is the word that RBAC knows, such as list and watch.
	Verb string
	// The object of the request; Group is empty for the core, Name for collections, and all of them for other paths than
	// objects'.
	Group, Resource, Subresource, Namespace, Name string
	// LabelSelector and FieldSelector are the query's.
	LabelSelector, FieldSelector string
	// Path is the path, and Query all of the query.
	Path  string
	Query url.Values
	// Code is the status of the answer.
	Code int
}

// Requests returns the requests of a user, in the order in which they were answered, all if the user is empty. A watch
// is among them once it has begun. A test that has seen the answer to a request may have to ask again: the apiserver
// records it just after.
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
	begun := map[string]bool{} // by audit ID; a watch is recorded at its begin and at its end
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the last line may be in the making
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

// ServiceAccountUser returns the name of a service account as a User of Requests.
func ServiceAccountUser(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

func (e *Env) auditLog() string { return filepath.Join(e.dir, "audit.log") }

// auditEvent has the fields that are read of a line of the audit log.
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
