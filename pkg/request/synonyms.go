package request

// Synonym is an ecosystem header for the identity or the objective.
type Synonym struct {
	// Header is the name, and Key the key of the configuration that may name it.
	Header, Key string
	slot        slot
}

// Synonyms are the newer and older headers. They are read only if the configuration names them, and never reach the
// model server.
var Synonyms = []Synonym{
	{fixedNames[slotFairness], "flows.key", slotFairness},
	{fixedNames[slotOldFairness], "flows.key", slotOldFairness},
	{fixedNames[slotObjective], "criticality.objectiveHeaders", slotObjective},
	{fixedNames[slotOldObjective], "criticality.objectiveHeaders", slotOldObjective},
}

// Set returns the header as a set.
func (s *Synonym) Set() Slots { return 1 << s.slot }

// leaveSynonyms derives unread: the synonyms that the configuration does not name.
func (r *Rules) leaveSynonyms() {
	for i := range Synonyms {
		if s := Synonyms[i].slot; !r.single.has(s) {
			r.unread |= 1 << s
		}
	}
}
