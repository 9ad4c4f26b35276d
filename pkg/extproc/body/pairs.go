package body

// Rerank and score read a text together with each of others. Pairs is how much that is, of the fields in which APIs take
// them: one text or as many as there are others (query, queries, text_1, data_1), and the others (documents, items, text_2,
// data_2, and texts and inputs, which may stand alone).

// pairKeys are the keys, in two parts: what stands on one side, and on the other.
var pairKeys = map[string]promptKey{
	"query": query, "queries": queries, "text_1": text1, "data_1": data1,
	"documents": documents, "items": items, "text_2": text2, "data_2": data2, "texts": texts, "inputs": inputs,
}

// pairs returns how much has to be read of the pairs: a text that is alone on its side once for each on the other side.
func (p *promptParts) pairs() Prompt {
	one, other := sideOf(p[query:documents]), sideOf(p[documents:noPart])
	all := Prompt{Text: one.Text + other.Text, Prompts: 1}
	switch {
	case one.Prompts <= 1 && other.Prompts > 1:
		all.Text = one.Text*other.Prompts + other.Text // below 2^31 each
	case other.Prompts <= 1 && one.Prompts > 1:
		all.Text = one.Text + other.Text*one.Prompts
	}
	return all
}

func sideOf(parts []Prompt) (side Prompt) {
	for i := range parts {
		side.Text += parts[i].Text
		side.Prompts += parts[i].Prompts
	}
	return side
}
