package config

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func TestDecimalText(t *testing.T) {
	for text, want := range map[string]struct {
		millionths int64
		canonical  string
	}{
		"0":                {0, "0"},
		"2":                {2_000_000, "2"},
		"0.1":              {100_000, "0.1"},
		"0.10":             {100_000, "0.1"},
		"007":              {7_000_000, "7"},
		"-1.25":            {-1_250_000, "-1.25"},
		"-0.000001":        {-1, "-0.000001"},
		"2.1000000000":     {2_100_000, "2.1"},
		"999999999.999999": {999_999_999_999_999, "999999999.999999"},
	} {
		d, err := ParseDecimal(text)
		if err != nil || d.Millionths() != want.millionths || d.String() != want.canonical {
			t.Errorf("ParseDecimal(%q) = %v (%d millionths), %v; want %s", text, d, d.Millionths(), err, want.canonical)
		}
	}
}

func TestDecimalErrors(t *testing.T) {
	for text, want := range map[string]error{
		"":           errNotDecimal,
		".5":         errNotDecimal,
		"5.":         errNotDecimal,
		"+1":         errNotDecimal,
		"--1":        errNotDecimal,
		"1e3":        errNotDecimal,
		"0x10":       errNotDecimal,
		".inf":       errNotDecimal,
		"1_000":      errNotDecimal,
		"0.0000001":  errDecimalPlaces,
		"1234567890": errDecimalTooLong,
	} {
		if d, err := ParseDecimal(text); !errors.Is(err, want) {
			t.Errorf("ParseDecimal(%q) = %v, %v; want %v", text, d, err, want)
		}
	}
}

// The error of a flag with an invalid decimal has the allowed values, as for a file.
func TestDecimalSet(t *testing.T) {
	for text, want := range map[string]string{
		"many":       "must be a plain decimal number, such as 0.1",
		"1e3":        "must be a plain decimal number, such as 0.1",
		"0.0000001":  "must have at most six digits after the point",
		"1234567890": "must have at most nine digits before the point",
	} {
		d := One
		if err := d.Set(text); err == nil || err.Error() != want || d != One {
			t.Errorf("%s: %v, %v; want %s", text, d, err, want)
		}
	}
}

// The text of a decimal reads back as exactly the same number, so rewriting a configuration never changes it.
func TestDecimalRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := Decimal(random.Int64N(2e15) - 1e15)
		if back, err := ParseDecimal(d.String()); err != nil || back != d {
			t.Fatalf("%d millionths -> %s -> %d, %v", d, d, back, err)
		}
	}
}
