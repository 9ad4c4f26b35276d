package request

import (
	"strings"
	"testing"
)

// Only what is listed bypasses the queue: no upgrades, and GET, HEAD, OPTIONS and DELETE without a body, or a few paths
// exactly as listed.
func TestCheap(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PassOnPaths = []string{"/own"}
	for _, test := range []struct {
		want    bool
		end     bool
		headers string // separated by blanks
	}{
		{true, true, ":method GET :path /v1/models"},
		{true, true, ":method GET :path /v1/chat/completions"},
		{true, true, ":method HEAD :path /anything%0A"},
		{true, true, ":method OPTIONS :path *"},
		{true, true, ":method DELETE :path /v1/responses/1?a=b content-length 0"},
		{true, true, ":method GET :path / connection Keep-Alive"},
		{true, true, ":method GET :path / connection close"},
		{true, false, ":method POST :path /tokenize content-length 5"},
		{true, false, ":method POST :path /v1/messages/count_tokens?beta=true"},
		{true, false, ":method PATCH :path /own"},
		{false, false, ":method GET :path /v1/models"}, // a body may come
		{false, true, ":method GET :path / content-length 5"},
		{false, true, ":method GET :path / transfer-encoding chunked"},
		{false, true, ":method POST :path /generate"},
		{false, true, ":method PUT :path /generate"},
		{false, true, ":method get :path /v1/models"},
		{false, true, ":path /v1/models"},
		{false, true, ":method CONNECT :path /"},
		{false, true, ":method CONNECT :path /own"},
		{false, true, ":method GET :path / :protocol websocket"},
		{false, true, ":method GET :path / upgrade websocket"},
		{false, true, ":method GET :path / connection upgrade"},
		{false, true, ":method GET :path / connection keep-alive,Upgrade"},
		{false, true, ":method GET :path / connection close connection upgrade"},
		{false, false, ":method GET :path /own upgrade websocket connection upgrade"},
		{false, false, ":method POST :path /own/"},
		{false, false, ":method POST :path /Own"},
		{false, false, ":method POST :path /%6Fwn"},
		{false, false, ":method POST :path /x/own"},
		{false, false, ":method POST :path /own%0A"},
		{false, false, ":method POST :path /own;a"},
		{false, false, ":method POST :path /own#a"},
		{false, false, ":method POST :path //tokenize"},
		{false, false, ":method POST :path /v1/chat/completions?/tokenize"},
		{false, false, ":method POST :path /tokenize/../generate"},
	} {
		q, _ := (&sent{cfg: cfg, end: test.end, headers: headers(strings.Fields(test.headers)...)}).read()
		if q.PassesOn != test.want {
			t.Errorf("%s: %v", test.headers, q.PassesOn)
		}
	}
}
