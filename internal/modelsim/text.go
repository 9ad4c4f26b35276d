package modelsim

// words are the tokens of all texts: none needs escaping in JSON, and each is one token.
var words = [...]string{
	" weir", " river", " flow", " level", " gate", " bank", " stone", " reed", " pool", " spring", " tide", " mill",
	" bridge", " current", " delta", " eddy", " ford", " heron", " island", " lock", " marsh", " oar", " pebble",
	" quay", " rapid", " sluice", " trout", " upstream", " valley", " wave", " willow", " brook",
}

// mix is the finalizer of SplitMix64: it spreads a number over all 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// appendText appends the tokens in [from, to) of the text that the key determines.
func appendText(dst []byte, key uint64, from, to int) []byte {
	for i := from; i < to; i++ {
		word := words[mix(key+uint64(i))%uint64(len(words))]
		if i == 0 {
			word = word[1:]
		}
		dst = append(dst, word...)
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// appendID appends 24 hexadecimal digits that the key determines.
func appendID(dst []byte, key uint64) []byte {
	high, low := mix(key), mix(key^0xa5a5a5a5)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[high>>shift&15])
	}
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[low>>shift&15])
	}
	return dst
}
