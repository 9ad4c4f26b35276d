package config

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// With the profile dynamo-drr classes share by the tokens of prompts, whatever the lengths of their answers: with equal
// quanta prompts of 400 and of 100 tokens go one to four. Within a class the order wspt puts the short prompt first. A
// full queue evicts no request, and admits one that fits.
func TestDynamoSharesByTokensOfPrompts(t *testing.T) {
	d, err := Load(Source{Text: []byte("profile: dynamo-drr\nfairRequestQueue: { totalCapacity: 104, flowCapacity: 104 }\n" +
		"classes: [ { name: long, quantum: 400 }, { name: short, quantum: 400, order: wspt } ]")})
	if err != nil {
		t.Fatal(err)
	}
	q, err := fairqueue.New(d.FlowcontrolConfig().Queue)
	if err != nil {
		t.Fatal(err)
	}
	costs := estimate.New(d.ExtprocConfig().Tokens)
	now := time.Unix(0, 0)
	push := func(class string, tokens, answer int64) (displaced *fairqueue.Request, err error) {
		size := estimate.Request{Flow: class, Tokens: tokens, Text: -1, Length: -1, Answers: 1, MaxOutput: answer}
		return q.Push(now, &fairqueue.Request{
			Path: &fairqueue.Path{Class: class}, Cost: fairqueue.Cost(costs.Estimate(&size).Cost), Owner: tokens,
		})
	}
	for i := range 100 {
		class, tokens := "long", int64(400)
		if i%5 > 0 {
			class, tokens = "short", 100
		}
		if displaced, err := push(class, tokens, int64(i)*1000); displaced != nil || err != nil {
			t.Fatal(displaced, err)
		}
	}
	for _, tokens := range []int64{90, 10, 50, 30} {
		if _, err := push("short", tokens, 5000); err != nil {
			t.Fatal(err)
		}
	}
	if displaced, err := push("long", 1, 1); displaced != nil || err == nil {
		t.Errorf("a full queue: displaced %v, %v", displaced, err)
	}
	var order []int64
	short, long := 0, 0
	for range 50 {
		c := q.Peek(now, fairqueue.Allowed{Tiers: fairqueue.AllTiers})
		q.Pop(c)
		tokens := c.Request.Owner.(int64)
		if tokens == 400 {
			long++
			continue
		}
		short++
		if order = append(order, tokens); len(order) > 4 && tokens != 100 {
			t.Errorf("%d tokens after longer ones: %v", tokens, order)
		}
	}
	if len(order) < 4 || order[0] != 10 || order[1] != 30 || order[2] != 50 || order[3] != 90 {
		t.Errorf("wspt: %v", order)
	}
	// The four shortest prompts have 180 tokens.
	if got := int64(short-4)*100 + 180 - int64(long)*400; got < -800 || got > 800 {
		t.Errorf("%d prompts of 400 tokens and %d others: not the same tokens", long, short)
	}
	if w := d.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	if yaml, _ := d.Marshal(); !strings.Contains(string(yaml), "capacityMode: reject") {
		t.Error("the profile displaces")
	}
}

// A class without an order has that of the flows. The same goes for a tier without classes.
func TestOrderOfClasses(t *testing.T) {
	d, err := Load(Source{Text: []byte("flows: { order: edf }\nclasses: [ { name: a, quantum: 1 }, " +
		"{ name: b, quantum: 1, order: fcfs }, { name: c, quantum: 1, order: wspt } ]")})
	if err != nil {
		t.Fatal(err)
	}
	q := d.FlowcontrolConfig().Queue
	if a, b, c := q.Classes[0].Order, q.Classes[1].Order, q.Classes[2].Order; q.Order != fairqueue.EDF || a != fairqueue.EDF ||
		b != fairqueue.FCFS || c != fairqueue.WSPT {
		t.Errorf("orders %d; %d, %d and %d", q.Order, a, b, c)
	}
}
