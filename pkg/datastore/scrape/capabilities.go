package scrape

import (
	"encoding/json"
	"slices"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// abilities is the part of a list's entry with a model's abilities. Engines and gateways state them in several forms:
// llama.cpp and Ollama as a list of words, Mistral and MindRouter as an object of words and booleans, others as
// modalities and parameters. Other forms are ignored.
type abilities struct {
	Capabilities json.RawMessage `json:"capabilities"`
	Architecture json.RawMessage `json:"architecture"`
	Parameters   json.RawMessage `json:"supported_parameters"`
}

// words are the words for the needs, in the order of their bits.
var words = [...][]string{
	{"image", "vision", "multimodal"},
	{"audio", "multimodal"},
	{"video", "multimodal"},
	{"embedding", "embeddings"},
	{"structured_output", "structured_outputs", "response_format", "json_mode", "json_schema", "tools", "function_calling"},
}

// The modalities of a prompt. A list of modalities is complete.
const modalities = scheduling.NeedImage | scheduling.NeedAudio | scheduling.NeedVideo

// lacks returns the stated needs that a model does not meet.
func (a *abilities) lacks() (lacks scheduling.Needs) {
	if list, ok := listOf(a.Capabilities); ok { // such lists say nothing of structured output: engines that have it do not list it
		lacks |= without(list) &^ scheduling.NeedStructured
	}
	var stated map[string]bool
	if json.Unmarshal(a.Capabilities, &stated) == nil {
		for i, of := range words {
			known, able := false, false
			for _, word := range of {
				value, given := stated[word]
				known, able = known || given, able || value
			}
			if known && !able {
				lacks |= 1 << i
			}
		}
	}
	var architecture struct {
		Input json.RawMessage `json:"input_modalities"`
	}
	_ = json.Unmarshal(a.Architecture, &architecture) // an unreadable value states nothing
	if list, ok := listOf(architecture.Input); ok {
		lacks |= without(list) & modalities
	}
	if list, ok := listOf(a.Parameters); ok {
		lacks |= without(list) & scheduling.NeedStructured
	}
	return lacks
}

// listOf returns a non-empty list of words.
func listOf(text json.RawMessage) (list []string, ok bool) {
	err := json.Unmarshal(text, &list)
	return list, err == nil && len(list) > 0
}

// without returns the needs for which a list has no word.
func without(list []string) (lacks scheduling.Needs) {
	for i, of := range words {
		if !slices.ContainsFunc(list, func(word string) bool { return slices.Contains(of, word) }) {
			lacks |= 1 << i
		}
	}
	return lacks
}

// loading is the part of a list's entry that states whether a model is loaded, in engines that load models on demand:
// llama.cpp's router has a status, LM Studio a state, others a boolean.
type loading struct {
	Status json.RawMessage `json:"status"`
	State  json.RawMessage `json:"state"`
	Loaded json.RawMessage `json:"loaded"`
}

// unloaded reports whether the model is stated as not loaded.
func (l *loading) unloaded() bool {
	var status struct {
		Value string `json:"value"`
	}
	if json.Unmarshal(l.Status, &status) == nil && status.Value != "" {
		return status.Value != "loaded"
	}
	var state string
	if json.Unmarshal(l.State, &state) == nil && state != "" {
		return state != "loaded"
	}
	return string(l.Loaded) == "false"
}
