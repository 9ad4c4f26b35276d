package codec

import (
	"unicode/utf8"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	typeaiv3 "github.com/envoyproxy/go-control-plane/envoy/type/ai/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// usageURL is the type of the usage of an answer, as Envoy packs it.
const usageURL = "type.googleapis.com/envoy.data.ai.v3.TokenUsage"

// ReadUsage reads the usage of an answer that Envoy has packed into metadata. It returns an error if it is anything else.
func ReadUsage(packed *anypb.Any) (*aiv3.TokenUsage, error) {
	u := &aiv3.TokenUsage{}
	if packed.GetTypeUrl() == usageURL && readUsage(packed.GetValue(), u) {
		return u, nil
	}
	return u, packed.UnmarshalTo(u) // which resets u first
}

func readUsage(b []byte, u *aiv3.TokenUsage) bool {
	f := fields{rest: b}
	for f.next() {
		ok := true
		switch f.tag {
		case 1<<fieldShift | wireVarint:
			u.LlmProtocol = typeaiv3.LLMProtocol(f.number)
		case 2<<fieldShift | wireBytes:
			u.Model, ok = string(f.bytes), utf8.Valid(f.bytes)
		case 3<<fieldShift | wireBytes:
			ok = readNumber(f.bytes, &u.InputTokens)
		case 4<<fieldShift | wireBytes:
			ok = readNumber(f.bytes, &u.OutputTokens)
		case 5<<fieldShift | wireBytes:
			ok = readNumber(f.bytes, &u.TotalTokens)
		case 6<<fieldShift | wireBytes:
			ok = u.InputTokenDetails == nil
			u.InputTokenDetails = &aiv3.InputTokenDetails{}
			d := u.InputTokenDetails
			ok = ok && readNumbers(f.bytes, &d.CachedTokens, &d.CacheCreationTokens, &d.ToolUseTokens)
		case 7<<fieldShift | wireBytes:
			ok = u.OutputTokenDetails == nil
			u.OutputTokenDetails = &aiv3.OutputTokenDetails{}
			ok = ok && readNumbers(f.bytes, &u.OutputTokenDetails.ReasoningTokens)
		case 8<<fieldShift | wireBytes:
			ok = readNumber(f.bytes, &u.ProviderTotalTokens)
		case 9<<fieldShift | wireVarint:
			u.ExtractionStatus = aiv3.TokenUsage_ExtractionStatus(f.number)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return !f.bad
}

// readNumbers reads a message whose fields, from 1 on, are numbers in messages of their own.
func readNumbers(b []byte, numbers ...**wrapperspb.UInt64Value) bool {
	f := fields{rest: b}
	for f.next() {
		field := int(f.tag>>fieldShift) - 1
		if f.tag&wireMask != wireBytes || field < 0 || field >= len(numbers) || !readNumber(f.bytes, numbers[field]) {
			return false
		}
	}
	return !f.bad
}

func readNumber(b []byte, n **wrapperspb.UInt64Value) bool {
	if *n != nil {
		return false
	}
	*n = &wrapperspb.UInt64Value{}
	f := fields{rest: b}
	for f.next() {
		if f.tag != 1<<fieldShift|wireVarint {
			return false
		}
		(*n).Value = f.number
	}
	return !f.bad
}
