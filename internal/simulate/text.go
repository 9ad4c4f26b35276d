package simulate

import "github.com/weir-epp/weir/internal/splitmix"

// Texts makes text for the prompts of requests.
type Texts struct {
	// BlockBytes is the length of a hash's text, above 0.
	BlockBytes int
	// Seed determines the words.
	Seed uint64
}

// textWords are the words of prompts. None needs escaping in JSON.
var textWords = [...]string{
	"anchor ", "birch ", "canal ", "dawn ", "ember ", "field ", "granite ", "harbour ", "inlet ", "jetty ", "kelp ", "lantern ",
	"meadow ", "north ", "orchard ", "pier ", "quarry ", "ridge ", "shore ", "thicket ", "upland ", "vessel ", "wharf ", "yarrow ",
}

// Append appends a text of bytes bytes for a request's prompt: BlockBytes for each of its hashes, equal for equal
// hashes. The rest, or all of it without hashes, is unique to the request's number.
func (t *Texts) Append(dst []byte, r *Request, bytes int, number uint64) []byte {
	for _, hash := range r.Blocks {
		if bytes <= 0 {
			return dst
		}
		n := min(t.BlockBytes, bytes)
		dst = appendWords(dst, splitmix.Mix(t.Seed)^hash, n)
		bytes -= n
	}
	return appendWords(dst, splitmix.Mix(splitmix.Mix(t.Seed+1)+number), bytes)
}

// appendWords appends words determined by the key, cut to bytes bytes.
func appendWords(dst []byte, key uint64, bytes int) []byte {
	end := len(dst) + max(0, bytes)
	for i := uint64(0); len(dst) < end; i++ {
		dst = append(dst, textWords[splitmix.Mix(key+i)%uint64(len(textWords))]...)
	}
	return dst[:end]
}
