package request

import "github.com/weir-epp/weir/pkg/extproc/body"

// edit lists the replacements in the body.
func (q *Request) edit(f *body.Fields) {
	if q.Target != "" && f.ModelEnd > 0 && f.Model != q.Target {
		q.Edits = append(q.Edits, f.Rename(q.Target))
	}
	if f.Stream && f.AskUsage.Text != "" && q.asksUsage {
		q.Edits, q.AsksUsage = append(q.Edits, f.AskUsage), true
	}
}
