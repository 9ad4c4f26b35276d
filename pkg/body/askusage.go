package body

// The edits by which a body asks for the usage of a streamed answer.
const (
	askTrue    = `true`
	askMember  = `"include_usage":true`
	askOptions = `{` + askMember + `}`
	askAll     = `"stream_options":` + askOptions + `,`
)

// streamOptions reads the value of stream_options, and finds out how to make it ask for usage. The body is left as it is
// if it asks already, or says something that is not understood, or asks for usage in every event, which it gets only
// together with include_usage (continuous_usage_stats, vLLM).
func (s *scanner) streamOptions(f *Fields) error {
	f.IncludeUsage, f.AskUsage = false, Edit{}
	start := s.i
	if s.b[s.i] != '{' {
		err := s.value(1)
		if err == nil && string(s.b[start:s.i]) == "null" {
			f.AskUsage = Edit{Start: start, End: s.i, Text: askOptions}
		}
		return err
	}
	s.i++
	ask := Edit{Start: s.i, End: s.i, Text: askMember}
	continuous := false
	err := s.members(func(key []byte) error {
		start := s.i
		if err := s.value(2); err != nil {
			return err
		}
		if ask.Text == askMember {
			ask.Text += ","
		}
		value := string(s.b[start:s.i])
		off := value == "false" || value == "null"
		switch string(key) {
		case "include_usage":
			f.IncludeUsage = value == "true"
			if ask = (Edit{}); off {
				ask = Edit{Start: start, End: s.i, Text: askTrue}
			}
		case "continuous_usage_stats":
			continuous = !off
		}
		return nil
	})
	if !continuous {
		f.AskUsage = ask
	}
	return err
}
