package request

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// maxIdentityBytes is the longest identity used unchanged. A longer one, or one that is not UTF-8, is hashed.
const maxIdentityBytes = 256

// bounded returns id, or its hash if id is too long to keep or is not text.
func bounded(id string) string {
	if len(id) <= maxIdentityBytes && utf8.ValidString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// A flow's key may be a secret: an API key, a token. With Config.HashFlowKeys a key from a header, metadata or an
// attribute is replaced by its hash as soon as it is read, so metrics, logs and pages cannot show it. Names in the
// configuration are hashed in the same way. A model's name is not a secret and is not hashed.

const (
	hashPrefix = "sha256:"
	hashDigits = 32 // 128 bits: no chance collisions, and no second identity for a hash can be found
)

// hashedFlow returns the hash of an identity: "sha256:" and the first 32 hexadecimal digits of its SHA-256.
func hashedFlow(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hashPrefix + hex.EncodeToString(sum[:hashDigits/2])
}

// HashedFlowName returns the hash of a name in the configuration, or the name itself if it is already a hash.
func HashedFlowName(name string) string {
	digits, ok := strings.CutPrefix(name, hashPrefix)
	if ok && len(digits) == hashDigits && strings.Trim(digits, "0123456789abcdef") == "" {
		return name
	}
	return hashedFlow(name)
}
