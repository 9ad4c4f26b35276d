package datastore

import (
	"errors"
	"fmt"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// loadEndpoints reads and decodes the file once.
func loadEndpoints(path string) ([]scheduling.Endpoint, error) {
	content, err := readBounded(path)
	if err != nil {
		return nil, err // an error of the file system, which names the path
	}
	endpoints, err := DecodeEndpoints(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return endpoints, nil
}

// fileChanged is the callback that Files calls.
func (s *Store) fileChanged(content []byte, err error) {
	var endpoints []scheduling.Endpoint
	if err == nil {
		endpoints, err = DecodeEndpoints(content)
	}
	if err == nil {
		s.Set(endpoints)
	}
	s.reportFile(err)
}

// reportFile logs the state of the file and passes it to OnFile, unless the file was and is good.
func (s *Store) reportFile(err error) {
	before := s.Invalid()
	if err != nil {
		s.invalid.Store(&err)
	} else {
		s.invalid.Store(nil)
	}
	switch {
	case err == nil && before == nil:
		return
	case err == nil:
		s.log.Info("the endpoints file is good again", "path", s.config.File)
	default:
		s.log.Error(err, "the endpoints file is unusable; keeping the last good endpoints", "path", s.config.File)
	}
	if s.config.OnFile != nil {
		s.config.OnFile(err)
	}
}

var errNoEndpoints = errors.New("endpoints: missing (an empty pool is written as endpoints: [])")
