package fairqueue

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// All dispatch orders that were recorded from Dynamo's service 1.6.1 are reproduced exactly with that version's cursor,
// and the third and the twelfth with the other cursor too.
func TestDynamoOrders(t *testing.T) {
	for i, scene := range dynamoScenes(t) {
		n := i + 1
		stays := n == 3 || n == 12
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for _, cursor := range []Cursor{Advance, Stay} {
				got, want := dynamoOrder(t, scene, cursor)
				if same := slices.Equal(got, want); same != (cursor == Advance || stays) {
					t.Errorf("cursor %d: as recorded: %t\ngot  %v\nwant %v", cursor, same, got, want)
				}
			}
		})
	}
}

// dynamoScenes returns the 12 recorded scenes.
func dynamoScenes(t *testing.T) (scenes []string) {
	text, err := os.ReadFile("testdata/dynamo-orders")
	if err != nil {
		t.Fatal(err)
	}
	for scene := range strings.SplitSeq(string(text), "\n\n") {
		if !strings.HasPrefix(scene, "#") {
			scenes = append(scenes, scene)
		}
	}
	if len(scenes) != 12 {
		t.Fatalf("%d orders, want 12", len(scenes))
	}
	return scenes
}

// dynamoOrder runs one scene. It returns the order in which its requests go, and the recorded one.
func dynamoOrder(t *testing.T, scene string, cursor Cursor) (got, want []int) {
	return dynamoOrderIn(t, scene, cursor, ""), recordedOrder(t, scene)
}

func recordedOrder(t *testing.T, scene string) (want []int) {
	for line := range strings.Lines(scene) {
		if words := strings.Fields(line); words[0] == "popped" {
			for _, w := range words[1:] {
				want = append(want, number(t, w))
			}
		}
	}
	return want
}

// dynamoOrderIn runs one scene in a ring and returns the order in which its requests go. Unless the ring is "", requests wait in
// another one as well.
func dynamoOrderIn(t *testing.T, scene string, cursor Cursor, name string) (got []int) {
	var ring []ClassConfig
	var pushed []string
	for line := range strings.Lines(scene) {
		words := strings.Fields(line)
		switch words[0] {
		case "ring":
			for _, w := range words[1:] {
				f := strings.Split(w, ":")
				c := ClassConfig{Name: f[0], Quantum: Cost(number(t, f[1]))}
				if f[2] == "wspt" {
					c.Order = WSPT
				}
				ring = append(ring, c)
			}
		case "pushed":
			pushed = append(pushed, words[1:]...)
		}
	}
	for i := range ring {
		ring[i].Ring = name
	}
	q := classes(t, cursor, append(ring, ClassConfig{Name: "beside", Quantum: 1, Ring: "beside"})...)
	mustPush(t, q, &Request{Path: &Path{Ring: name, Class: ring[0].Name}, Cost: 1}) // the one that made the worker busy
	popNext(q)
	for range len(pushed) {
		if name != "" {
			mustPush(t, q, &Request{Path: &Path{Ring: "beside"}, Cost: 1000, Owner: -1})
		}
	}
	for i, p := range pushed {
		class, cost, _ := strings.Cut(p, ":")
		mustPush(t, q, &Request{
			Path: &Path{Ring: name, Class: ring[number(t, class)].Name}, Cost: Cost(number(t, cost)), Owner: i,
		})
	}
	for r := popNext(q); r != nil; r = popNext(q) {
		if r.Owner != -1 {
			got = append(got, r.Owner.(int))
		}
	}
	return got
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
