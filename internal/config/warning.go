package config

import "fmt"

// Warnings are what is allowed but can hardly be meant.
func (d Document) Warnings() []Problem {
	var ws []Problem
	for i, t := range d.Tiers {
		timeout := d.FairRequestQueue.QueueTTL
		if t.QueueTimeout != nil {
			timeout = *t.QueueTimeout
		}
		if t.StarvationThreshold != nil && *t.StarvationThreshold >= timeout {
			ws = append(ws, Problem{
				Path: index("tiers", i) + ".starvationThreshold",
				Message: fmt.Sprintf("%s: never fires, since a waiter of this tier expires after %s",
					*t.StarvationThreshold, timeout),
			})
		}
	}
	if c := d.RequestQueueController; !c.Enabled && c.EnqueueAll {
		ws = append(ws, Problem{
			Path:    "requestQueueController.enqueueAll",
			Message: "true: has no effect, since requestQueueController.enabled is false",
		})
	}
	return ws
}
