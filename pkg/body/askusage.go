package body

// The edits that make a body request the usage of a streamed answer.
const (
	askTrue    = `true`
	askMember  = `"include_usage":true`
	askOptions = `{` + askMember + `}`
	askAll     = `"stream_options":` + askOptions + `,`
)

// streamOptions reads the value of stream_options, and finds the edit that makes it request usage. There is no edit if
// it already requests usage, has unknown content, or has vLLM's continuous_usage_stats, which takes effect only with
// include_usage.
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
