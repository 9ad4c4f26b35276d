package modelsim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
)

// inference is a request's demand, the same for all APIs.
type inference struct {
	model        string     // empty: the served one
	prompts      []int      // tokens of each prompt
	blocks       [][]uint64 // hashes of each prompt's blocks
	choices      int        // answers to each prompt
	limit        int        // largest number of output tokens of each answer
	limited      bool       // the request set the limit itself
	stream       bool
	includeUsage bool
	ignoreEOS    bool
}

// limitKeys are each API's names for the output limit; the first one present counts.
var (
	chatLimitKeys       = []string{"max_completion_tokens", "max_tokens"}
	completionLimitKeys = []string{"max_tokens"}
	responsesLimitKeys  = []string{"max_output_tokens"}
)

const maxChoices = 128

// object is a JSON object with exact keys; of duplicate keys the last value wins, as in the real servers.
type object map[string]json.RawMessage

// get decodes the field into dst. If the field is absent or null, it leaves dst unchanged.
func (o object) get(key string, dst any) error {
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// parse parses a request's body. An error is the client's fault, a 400.
func (h *Handler) parse(api api, body []byte) (*inference, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("JSON decode error: %w", err)
	}
	if o == nil {
		return nil, fmt.Errorf("the body is null, want an object")
	}
	in := &inference{choices: 1, limit: h.cfg.DefaultOutputTokens}
	var streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	for _, f := range []struct {
		key string
		dst any
	}{
		{"model", &in.model},
		{"stream", &in.stream},
		{"ignore_eos", &in.ignoreEOS},
		{"stream_options", &streamOptions},
	} {
		if err := o.get(f.key, f.dst); err != nil {
			return nil, err
		}
	}
	if api == chat || api == completions {
		if err := o.get("n", &in.choices); err != nil {
			return nil, err
		}
	}
	in.includeUsage = streamOptions.IncludeUsage
	if in.choices < 1 || in.choices > maxChoices {
		return nil, fmt.Errorf("n must be between 1 and %d, got %d", maxChoices, in.choices)
	}
	if err := h.readLimit(api, o, in); err != nil {
		return nil, err
	}
	if err := h.readPrompts(api, o, in); err != nil {
		return nil, err
	}
	return in, h.checkLength(in)
}

func (h *Handler) readLimit(api api, o object, in *inference) error {
	for _, key := range api.limitKeys() {
		limit := math.MinInt
		if err := o.get(key, &limit); err != nil {
			return err
		}
		if limit == math.MinInt {
			continue
		}
		if limit < 1 {
			return fmt.Errorf("%s must be at least 1, got %d", key, limit)
		}
		in.limit, in.limited = limit, true
		return nil
	}
	return nil
}

// readPrompts counts the prompt's tokens. Only /v1/completions takes several prompts, or token IDs.
func (h *Handler) readPrompts(api api, o object, in *inference) error {
	key := api.promptKey()
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return fmt.Errorf("%s: field required", key)
	}
	if key != "prompt" || raw[0] != '[' {
		in.prompts = []int{h.textTokens(len(raw) + len(o["system"]) + len(o["instructions"]))}
		in.blocks = [][]uint64{h.textBlocks(o.salt(), o["system"], o["instructions"], raw)}
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return fmt.Errorf("%s: want a text, texts, or token IDs", key)
	}
	if c := list[0][0]; c != '"' && c != '[' {
		in.prompts, in.blocks = []int{len(list)}, [][]uint64{h.idBlocks(o.salt(), list)}
		return nil
	}
	for _, one := range list {
		tokens, blocks := h.textTokens(len(one)), h.textBlocks(o.salt(), one)
		if one[0] == '[' {
			var ids []json.RawMessage
			_ = json.Unmarshal(one, &ids) // valid: it is part of a valid list
			tokens, blocks = max(len(ids), 1), h.idBlocks(o.salt(), ids)
		}
		in.prompts, in.blocks = append(in.prompts, tokens), append(in.blocks, blocks)
	}
	return nil
}

// textTokens returns the tokens of a text by the length of its JSON.
func (h *Handler) textTokens(jsonBytes int) int {
	return max((jsonBytes+h.cfg.BytesPerToken-1)/h.cfg.BytesPerToken, 1)
}

func (h *Handler) checkLength(in *inference) error {
	for _, prompt := range in.prompts {
		longest := h.cfg.MaxModelLen
		if longest > prompt && !in.limited {
			in.limit = min(in.limit, longest-prompt)
		}
		if longest > 0 && prompt+in.limit > longest {
			return fmt.Errorf("this model's maximum context length is %d tokens, but the request asks for %d: "+
				"%d in the prompt, %d in the answer", longest, prompt+in.limit, prompt, in.limit)
		}
		if !h.cfg.Engine.Fits(prompt, in.limit) {
			return fmt.Errorf("%d tokens do not fit the KV cache", prompt+in.limit)
		}
	}
	return nil
}

// outputTokens draws the length of one answer.
func (h *Handler) outputTokens(in *inference, key uint64) int {
	if h.cfg.EarlyStop == 0 || in.ignoreEOS {
		return in.limit
	}
	if h.cfg.EarlyStop == 1 {
		return 1
	}
	// The geometric distribution by inversion: each token but the last of the limit may be the last of the answer.
	rng := rand.New(rand.NewPCG(h.cfg.Seed, key))
	n := 1 + math.Floor(math.Log(1-rng.Float64())/math.Log(1-h.cfg.EarlyStop))
	if n < float64(in.limit) {
		return int(n)
	}
	return in.limit
}
