package recording

import "encoding/hex"

// A request's ID is usually a UUID in lower case: it is written as 16 bytes instead of 36.

const (
	uuidSize = 16
	uuidText = len("01234567-89ab-cdef-0123-456789abcdef")
)

// uuidDigits has the index of each byte's first digit.
var uuidDigits = [uuidSize]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

const noDigit = 0x80

// digits has the value of each hexadecimal digit, and noDigit for all other bytes.
var digits = func() (values [256]uint8) {
	for i := range values {
		values[i] = noDigit
	}
	for value, digit := range []byte("0123456789abcdef") {
		values[digit] = uint8(value)
	}
	return values
}()

// id writes a request's ID and returns the flag for its form.
func (r *Recorder) id(id string) (flag byte) {
	if len(id) == uuidText && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		var uuid [uuidSize]byte
		bad := uint8(0)
		for i, at := range uuidDigits {
			high, low := digits[id[at]], digits[id[at+1]]
			bad |= high | low
			uuid[i] = high<<4 | low
		}
		if bad&noDigit == 0 {
			r.buf = append(r.buf, uuid[:]...)
			return hasUUID
		}
	}
	if id == "" {
		return 0
	}
	r.number(uint64(len(id)))
	r.buf = append(r.buf, id...)
	return hasText
}

// uuidOf returns the UUID with these 16 bytes.
func uuidOf(b []byte) string {
	if len(b) != uuidSize {
		return ""
	}
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
