package app

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// size is the value of a flag in bytes: a number, or one with a unit, such as 10Mi, 10MiB or 25MB.
type size struct{ bytes *int }

var errSize = errors.New("must be a number of bytes, or one with a unit, such as 10Mi or 25MB")

// Set implements pflag.Value.
func (s size) Set(text string) error {
	number := text
	if len(text) > 1 && strings.HasSuffix(text, "B") {
		number = text[:len(text)-1]
	}
	q, err := resource.ParseQuantity(number)
	if err != nil {
		return errSize
	}
	bytes, whole := q.AsInt64()
	if !whole || bytes > math.MaxInt {
		return errSize
	}
	*s.bytes = int(bytes)
	return nil
}

// String implements pflag.Value.
func (s size) String() string { return strconv.Itoa(*s.bytes) }

// Type implements pflag.Value.
func (s size) Type() string { return "size" }
