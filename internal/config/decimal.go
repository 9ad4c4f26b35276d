package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decimal is an exact decimal number, counted in millionths: 0.1 is 100000. It holds at most six digits after the
// point and nine before it.
type Decimal int64

// One is the Decimal 1.
const One Decimal = 1_000_000

const (
	decimalPlaces    = 6
	decimalMaxDigits = 9
)

var (
	errNotDecimal     = errors.New("not a decimal number")
	errDecimalPlaces  = fmt.Errorf("more than %d digits after the point", decimalPlaces)
	errDecimalTooLong = fmt.Errorf("more than %d digits before the point", decimalMaxDigits)
)

// ParseDecimal parses text such as "2", "0.1" or "-1.25". Exponents, infinities, a leading plus, and more digits than a
// Decimal holds are errors.
func ParseDecimal(text string) (Decimal, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if !allDigits(whole) || (point && !allDigits(fraction)) {
		return 0, fmt.Errorf("config: %q: %w", text, errNotDecimal)
	}
	fraction = strings.TrimRight(fraction, "0")
	whole = strings.TrimLeft(whole, "0")
	if len(fraction) > decimalPlaces {
		return 0, fmt.Errorf("config: %q: %w", text, errDecimalPlaces)
	}
	if len(whole) > decimalMaxDigits {
		return 0, fmt.Errorf("config: %q: %w", text, errDecimalTooLong)
	}
	fraction += strings.Repeat("0", decimalPlaces-len(fraction))
	millionths, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("config: %q: %w", text, errNotDecimal)
	}
	if negative {
		millionths = -millionths
	}
	return Decimal(millionths), nil
}

// Millionths returns the number times 1,000,000.
func (d Decimal) Millionths() int64 { return int64(d) }

// String returns the shortest text of the number: "2", "0.1", "-1.25". ParseDecimal parses it back exactly.
func (d Decimal) String() string {
	sign, n := "", int64(d)
	if n < 0 {
		sign, n = "-", -n
	}
	whole, fraction := n/int64(One), n%int64(One)
	if fraction == 0 {
		return sign + strconv.FormatInt(whole, 10)
	}
	return sign + strconv.FormatInt(whole, 10) + "." + strings.TrimRight(fmt.Sprintf("%06d", fraction), "0")
}

// Set implements pflag.Value. Its error says which values are allowed.
func (d *Decimal) Set(text string) error {
	parsed, err := ParseDecimal(text)
	if err != nil {
		return errors.New(decimalAllowed(err))
	}
	*d = parsed
	return nil
}

// Type implements pflag.Value.
func (*Decimal) Type() string { return "decimal" }

// MarshalYAML writes the exact text as a YAML number.
func (d Decimal) MarshalYAML() (any, error) {
	tag := "!!float"
	if d%One == 0 {
		tag = "!!int"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: d.String()}, nil
}

func (d *Decimal) decodeScalar(node *yaml.Node) string {
	if node.Tag != "!!int" && node.Tag != "!!float" {
		return "must be a number"
	}
	parsed, err := ParseDecimal(node.Value)
	if err != nil {
		return decimalAllowed(err)
	}
	*d = parsed
	return ""
}

// decimalAllowed says which values are allowed where ParseDecimal has failed.
func decimalAllowed(err error) string {
	switch {
	case errors.Is(err, errDecimalPlaces):
		return "must have at most six digits after the point"
	case errors.Is(err, errDecimalTooLong):
		return "must have at most nine digits before the point"
	default:
		return "must be a plain decimal number, such as 0.1"
	}
}

func allDigits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}
