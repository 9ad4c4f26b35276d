package app

import (
	"maps"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// capabilities are the unmet needs stated in engines' lists of models. The pool's mu guards them.
type capabilities struct {
	lacks map[scheduling.EndpointID]scheduling.Needs // without zeros
	// newest is the last snapshot made from the store's and these statements; nil without statements.
	newest *scheduling.Snapshot
}

// state takes the statement of an endpoint's engine, and reports whether it has changed.
func (c *capabilities) state(id scheduling.EndpointID, lacks scheduling.Needs) (changed bool) {
	if c.lacks[id] == lacks {
		return false
	}
	if c.lacks == nil {
		c.lacks = map[scheduling.EndpointID]scheduling.Needs{}
	}
	if c.lacks[id] = lacks; lacks == 0 {
		delete(c.lacks, id)
	}
	return true
}

// forget forgets the statements of endpoints that are not ready.
func (c *capabilities) forget(ready map[scheduling.EndpointID]bool) {
	maps.DeleteFunc(c.lacks, func(id scheduling.EndpointID, _ scheduling.Needs) bool { return !ready[id] })
}

// of returns the store's snapshot, with the engines' statements for endpoints whose source states nothing.
func (c *capabilities) of(published *scheduling.Snapshot) *scheduling.Snapshot {
	if len(c.lacks) == 0 {
		c.newest = nil
		return published
	}
	endpoints := make([]scheduling.Endpoint, published.Len())
	for i := range endpoints {
		e := published.At(i)
		if !e.LacksStated {
			e.Lacks = c.lacks[e.ID]
		}
		endpoints[i] = e
	}
	before := c.newest
	if before == nil {
		before = published
	}
	c.newest = before.Next(published.Version(), endpoints)
	return c.newest
}
