package body

// Rerank and score read one text together with each of several other texts. Pairs measures these, from the APIs'
// fields: one text or as many as the others (query, queries, text_1, data_1), and the others (documents, items, text_2,
// data_2, and texts and inputs, which may be alone).

// pairKeys are the keys of the two sides.
var pairKeys = map[string]promptKey{
	"query": query, "queries": queries, "text_1": text1, "data_1": data1,
	"documents": documents, "items": items, "text_2": text2, "data_2": data2, "texts": texts, "inputs": inputs,
}

// pairs returns the bytes to read of the pairs: a single text of one side counts once for each text of the other side.
// An engine reads one field of each side, but the body does not tell which: the two longest count, so that an
// additional field makes no request look smaller.
func (p *promptParts) pairs() Prompt {
	all := Prompt{Prompts: 1}
	for _, part := range p[query:] {
		all.Text += part.Text
		all.Media += part.Media
		all.Frames += part.Frames
		all.Rest += part.Rest
	}
	for _, one := range p[query:documents] {
		for _, other := range p[documents:] {
			all.Text = max(all.Text, readWith(one.Text, other.Text, one.Prompts, other.Prompts))
			all.Rest = max(all.Rest, readWith(one.Rest, other.Rest, one.Prompts, other.Prompts))
		}
	}
	return all
}

// readWith returns the bytes to read of two sides together, given the bytes and the number of texts of each.
func readWith(one, other, ones, others int64) int64 {
	switch { // all are below 2^31
	case ones <= 1 && others > 1:
		return one*others + other
	case others <= 1 && ones > 1:
		return one + other*ones
	default:
		return one + other
	}
}
