package extproc

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A flow's key may be a secret: an API key, a token. With Config.HashFlowKeys a key that comes from a header, metadata or
// an attribute is replaced by its hash as soon as it is read, so that nothing that shows a flow (metrics, logs, pages) can
// show it. Names in the configuration are hashed alike. A model's name is no secret and stays.

const (
	hashPrefix = "sha256:"
	hashDigits = 32 // 128 bits: no two of anybody's flows are one by chance, and nobody finds a name for another's
)

// HashedFlow is what stands for an identity: "sha256:" and the first 32 hexadecimal digits of its SHA-256.
func HashedFlow(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hashPrefix + hex.EncodeToString(sum[:hashDigits/2])
}

// HashedFlowName is HashedFlow for a name in the configuration, which may be hashed there already.
func HashedFlowName(name string) string {
	digits, ok := strings.CutPrefix(name, hashPrefix)
	if ok && len(digits) == hashDigits && strings.Trim(digits, "0123456789abcdef") == "" {
		return name
	}
	return HashedFlow(name)
}
