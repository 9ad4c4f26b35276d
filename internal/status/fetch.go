package status

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// documentPath is where an epp serves its document.
const documentPath = "/debug/status"

// FetchTimeout bounds the time to read a document.
const FetchTimeout = 5 * time.Second

// Answer is one replica's document, or the error.
type Answer struct {
	Address  string
	Document *Document
	Err      error
}

// Fetch reads the documents of all replicas at once. The answers are in the order of the addresses.
func Fetch(ctx context.Context, addresses []string, q *Query) []Answer {
	answers := make([]Answer, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() {
			d, err := fetch(ctx, address, q)
			answers[i] = Answer{Address: address, Document: d, Err: err}
		})
	}
	wg.Wait()
	return answers
}

func fetch(ctx context.Context, address string, q *Query) (*Document, error) {
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	text, err := Read(ctx, address, documentPath, q.Values(), MaxBytes)
	if err != nil {
		return nil, ofDebugPort(err)
	}
	d := &Document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s is not a status: %w", documentPath, err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("the status has schema %d, and this weir reads schema %d: use the weir of the same version (%s)", d.Schema, Schema, Plain(d.Version))
	}
	return d, nil
}
