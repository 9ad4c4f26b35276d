package body

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// MaxDepth is the largest depth of nested arrays and objects.
const MaxDepth = 512

// Absent is the value of an integer field that is missing or null.
const Absent int64 = -1

// maxInteger bounds integer fields, so that their sums cannot overflow.
const maxInteger = 1 << 40

// Fields are the fields at the top level of a body.
type Fields struct {
	// Model is the model's name, decoded, or "" if there is none.
	Model string
	// ModelStart and ModelEnd are the byte range of the model's value, including its quotes. Both are 0 if there is no
	// model or it is not a string.
	ModelStart, ModelEnd int
	// ModelSeen reports whether there is a model, of any kind. If ModelEnd is 0, it is not a string.
	ModelSeen bool
	// Stream reports whether stream is true.
	Stream bool
	// IncludeUsage reports whether stream_options.include_usage is true.
	IncludeUsage bool
	// AskUsage is the edit that makes stream_options.include_usage true. It has no Text if that is already true, or if
	// the edit could change more than the usage.
	AskUsage Edit
	// MaxTokens, MaxCompletionTokens and MaxOutputTokens are max_tokens, max_completion_tokens and max_output_tokens,
	// and N and BestOf are n and best_of. From 0 to 2^40, or Absent. A number in a string counts, as it does for
	// engines, and an unreadable value is 0.
	MaxTokens, MaxCompletionTokens, MaxOutputTokens, N, BestOf int64
	// Hints are the hints in nvext.
	Hints Hints
	// Prompt measures the prompt, and Pairs the texts that rerank and score read instead.
	Prompt, Pairs Prompt
	// Rest is the length in bytes of all other values that an engine may show to the model, and PairsRest the length of
	// the values measured by Pairs.
	Rest, PairsRest int64
	// Needs are its needs that not every engine meets.
	Needs Needs
	// spans are the values of the prompt's first keys, which templates show, and of cache_salt and prompt_cache_key. A
	// missing one ends at 0.
	spans               [tools + 1]span
	cacheSalt, cacheKey span
	// media are the media of at least shortestMedia bytes in the prompt, ascending, without their quotes.
	media []span
	// ModelRaw is true if the model is plain text instead of a JSON string, as in a form.
	ModelRaw bool
}

// Syntax is the error of a body that is not a JSON object.
type Syntax struct {
	// Offset is the byte where the scan stopped.
	Offset int
	// Problem describes the problem there.
	Problem string
}

// Error implements error.
func (e *Syntax) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Problem)
}

// errEnd means that the bytes end inside a value.
var errEnd = errors.New("unexpected end")

// Scan sets f to the fields of b, which is a whole body. The error is a *Syntax.
func (f *Fields) Scan(b []byte) error {
	s := scanner{b: b, measured: noPart}
	f.begin()
	err := s.top(f)
	if errors.Is(err, errEnd) {
		return &Syntax{Offset: len(b), Problem: err.Error()}
	}
	return err
}

// begin makes f the fields of a body that has none.
func (f *Fields) begin() {
	*f = Fields{}
	f.MaxTokens, f.MaxCompletionTokens, f.MaxOutputTokens, f.N, f.BestOf = Absent, Absent, Absent, Absent, Absent
	f.Hints = noHints
	f.Prompt.Prompts, f.Pairs.Prompts = 1, 1
}

type scanner struct {
	b []byte
	i int
	// parts measure the prompt. measured is the part being read, or noPart. under is the latest key in it, to which the
	// next string may belong.
	parts    promptParts
	measured promptKey
	under    []byte
	loose    loose
	medium   medium
	// spans are the positions of the parts that templates show.
	spans [tools + 1]span
	media []span
	// kinds are the media in each part, and structure the requested forms of the answer.
	kinds     [noPart]mediaKinds
	structure structure
}

func (s *scanner) fail(problem string) error { return &Syntax{Offset: s.i, Problem: problem} }

// space skips blanks and returns the next byte without consuming it.
func (s *scanner) space() (byte, error) {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c, nil
		}
	}
	return 0, errEnd
}

// top scans the body's one object.
func (s *scanner) top(f *Fields) error {
	c, err := s.space()
	if err != nil {
		return err
	}
	if c != '{' {
		return s.fail("the body is not a JSON object")
	}
	s.i++
	// This edit applies unless there are stream_options. The text ends in a comma: a body that streams has a member more.
	f.AskUsage = Edit{Start: s.i, End: s.i, Text: askAll}
	err = s.members(func(key []byte) error { return s.field(key, f) })
	f.Prompt, f.Pairs = s.parts.sum(), s.parts.pairs()
	f.spans, f.media = s.spans, s.media
	f.Needs = s.needs()
	if err != nil {
		return err
	}
	if _, err := s.space(); err == nil {
		return s.fail("unexpected bytes after the JSON object")
	}
	return nil
}

// members scans the members of an object, from behind its brace to its end. It calls value with each decoded key; value
// must consume the key's value.
func (s *scanner) members(value func(key []byte) error) error {
	c, err := s.space()
	if err != nil {
		return err
	}
	if c == '}' {
		s.i++
		return nil
	}
	for {
		if c != '"' {
			return s.fail("expected a key")
		}
		start := s.i
		escaped, err := s.str()
		if err != nil {
			return err
		}
		key := s.b[start+1 : s.i-1]
		if escaped {
			key = unescape(key)
		}
		if c, err = s.space(); err != nil {
			return err
		}
		if c != ':' {
			return s.fail("expected a colon")
		}
		s.i++
		if _, err = s.space(); err != nil {
			return err
		}
		if err = value(key); err != nil {
			return err
		}
		if c, err = s.space(); err != nil {
			return err
		}
		s.i++
		switch c {
		case '}':
			return nil
		case ',':
		default:
			s.i--
			return s.fail("expected a comma or the end of the object")
		}
		if c, err = s.space(); err != nil {
			return err
		}
	}
}

// field reads one value of the top level.
func (s *scanner) field(key []byte, f *Fields) error {
	start := s.i
	switch string(key) {
	case "model":
		return s.model(f)
	case "stream":
		err := s.value(1)
		f.Stream = err == nil && string(s.b[start:s.i]) == "true"
		return err
	case "stream_options":
		return s.streamOptions(f)
	case "max_tokens":
		return s.integer(&f.MaxTokens)
	case "max_completion_tokens":
		return s.integer(&f.MaxCompletionTokens)
	case "max_output_tokens":
		return s.integer(&f.MaxOutputTokens)
	case "n":
		return s.integer(&f.N)
	case "best_of":
		return s.integer(&f.BestOf)
	case "messages":
		return s.part(messages)
	case "prompt":
		return s.part(prompt)
	case "input":
		return s.part(input)
	case "system":
		return s.part(system)
	case "instructions":
		return s.part(instructions)
	case "tools":
		return s.part(tools)
	case "previous_response_id":
		return s.part(previousResponse)
	case "conversation":
		return s.part(conversation)
	}
	if k, ok := pairKeys[string(key)]; ok {
		err := s.part(k)
		f.PairsRest += int64(s.i - start)
		return err
	}
	done, err := s.form(key)
	switch {
	case done:
	case string(key) == "nvext":
		err = s.extension(f)
	default:
		err = s.value(1)
	}
	switch string(key) {
	case "cache_salt":
		f.cacheSalt = span{start, s.i}
	case "prompt_cache_key":
		f.cacheKey = span{start, s.i}
	}
	if c := s.b[start]; (c == '"' || c == '[' || c == '{') && !slices.Contains(noPrompt, string(key)) {
		f.Rest += int64(s.i - start)
	}
	return err
}

// noPrompt are frequent fields that no engine shows to the model.
var noPrompt = []string{
	"stop", "stop_sequences", "stop_token_ids", "user", "metadata", "logit_bias", "tool_choice", "include", "prompt_cache_key",
	"safety_identifier", "service_tier",
}

func (s *scanner) model(f *Fields) error {
	start := s.i
	f.Model, f.ModelStart, f.ModelEnd, f.ModelSeen = "", 0, 0, true
	if s.b[s.i] != '"' {
		return s.value(1)
	}
	escaped, err := s.str()
	if err != nil {
		f.ModelSeen = false
		return err
	}
	raw := s.b[start+1 : s.i-1]
	if escaped {
		raw = unescape(raw)
	}
	f.Model, f.ModelStart, f.ModelEnd = validUTF8(raw), start, s.i
	return nil
}

func (s *scanner) integer(to *int64) error {
	start := s.i
	*to = Absent
	if err := s.value(1); err != nil {
		return err
	}
	b := s.b[start:s.i]
	if string(b) == "null" {
		return nil
	}
	if *to = 0; b[0] == '"' {
		b = inString(b[1 : len(b)-1])
	}
	if v, ok := number(b); ok {
		*to = int64(min(max(v, 0), maxInteger))
	}
	return nil
}

// inString returns the number in the inside of a string, without characters that pydantic accepts and Go does not.
func inString(raw []byte) []byte {
	b := bytes.TrimPrefix(bytes.TrimSpace(unescape(raw)), []byte("+"))
	return bytes.ReplaceAll(b, []byte("_"), nil)
}

// number returns the value of a number, and reports whether b is one. b is a JSON value or looks like a number.
func number(b []byte) (float64, bool) {
	if len(b) == 0 || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return 0, false
	}
	if len(b) <= 15 { // ParseFloat's frame of 800 bytes would make most streams copy their stacks
		if v, err := strconv.Atoi(string(b)); err == nil {
			return float64(v), true
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}
