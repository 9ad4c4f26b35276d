package datastore

import "bytes"

// followed is one followed file.
type followed struct {
	path    string // absolute
	changed func(content []byte, err error)

	trail trail // what is watched for it now

	called  bool
	content []byte // of the last call
	failure string // of the last call; "" if it had content
}

// read calls changed if the content or the error is new, or if again is set.
func (f *followed) read(again bool) {
	content, err := readBounded(f.path)
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if f.called && !again && failure == f.failure && (err != nil || bytes.Equal(content, f.content)) {
		return
	}
	f.called, f.content, f.failure = true, content, failure
	f.changed(content, err)
}
