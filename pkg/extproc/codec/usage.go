package codec

import (
	"unicode/utf8"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	typeaiv3 "github.com/envoyproxy/go-control-plane/envoy/type/ai/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// usageURL is the type URL of an answer's usage packed by Envoy.
const usageURL = "type.googleapis.com/envoy.data.ai.v3.TokenUsage"

// ReadUsage reads an answer's usage packed by Envoy into metadata. It returns an error for any other message.
func ReadUsage(packed *anypb.Any) (*aiv3.TokenUsage, error) {
	u := &aiv3.TokenUsage{}
	if packed.GetTypeUrl() == usageURL && readUsage(packed.GetValue(), u) {
		return u, nil
	}
	return u, packed.UnmarshalTo(u) // which resets u first
}

func readUsage(b []byte, u *aiv3.TokenUsage) bool {
	numbers := []**wrapperspb.UInt64Value{3: &u.InputTokens, 4: &u.OutputTokens, 5: &u.TotalTokens, 8: &u.ProviderTotalTokens}
	f := fields{rest: b}
	for f.next() {
		ok := true
		switch f.tag {
		case 1<<fieldShift | wireVarint:
			u.LlmProtocol = typeaiv3.LLMProtocol(f.number)
		case 2<<fieldShift | wireBytes:
			u.Model, ok = string(f.bytes), utf8.Valid(f.bytes)
		case 6<<fieldShift | wireBytes:
			d := &aiv3.InputTokenDetails{}
			ok = u.InputTokenDetails == nil && readNumbers(f.bytes, nil, &d.CachedTokens, &d.CacheCreationTokens, &d.ToolUseTokens)
			u.InputTokenDetails = d
		case 7<<fieldShift | wireBytes:
			d := &aiv3.OutputTokenDetails{}
			ok = u.OutputTokenDetails == nil && readNumbers(f.bytes, nil, &d.ReasoningTokens)
			u.OutputTokenDetails = d
		case 9<<fieldShift | wireVarint:
			u.ExtractionStatus = aiv3.TokenUsage_ExtractionStatus(f.number)
		default:
			ok = f.readNumber(numbers)
		}
		if !ok {
			return false
		}
	}
	return !f.bad
}

// readNumbers reads a message of numbers, by field number.
func readNumbers(b []byte, numbers ...**wrapperspb.UInt64Value) bool {
	f := fields{rest: b}
	for f.next() {
		if !f.readNumber(numbers) {
			return false
		}
	}
	return !f.bad
}

// readNumber reads a field that is a number in a message of its own.
func (f *fields) readNumber(numbers []**wrapperspb.UInt64Value) bool {
	i := f.tag >> fieldShift
	if f.tag&wireMask != wireBytes || i >= uint64(len(numbers)) || numbers[i] == nil || *numbers[i] != nil {
		return false
	}
	n := &wrapperspb.UInt64Value{}
	*numbers[i] = n
	inner := fields{rest: f.bytes}
	for inner.next() {
		if inner.tag != 1<<fieldShift|wireVarint {
			return false
		}
		n.Value = inner.number
	}
	return !inner.bad
}
