package envoyrun

import "slices"

// KeepHeader returns an Edit that lets clients send headers which the shipped files remove, each by its name in lower
// case, as if the clients were a trusted hop.
func KeepHeader(names ...string) func(Bootstrap) error {
	return func(b Bootstrap) error {
		mutations := Object(b.Filter(HeaderFilter), "mutations")
		all := List(mutations, "request_mutations")
		kept := make([]any, 0, len(all))
		for _, entry := range all {
			if name, ok := Object(entry)["remove"].(string); !ok || !slices.Contains(names, name) {
				kept = append(kept, entry)
			}
		}
		if len(kept) < len(all) {
			mutations["request_mutations"] = kept
		}
		return nil
	}
}

// WithoutFilter returns an Edit that removes the first listener's HTTP filters of that name, if there are any.
func WithoutFilter(name string) func(Bootstrap) error {
	return func(b Bootstrap) error {
		manager := b.ConnectionManager()
		var kept []any
		for _, entry := range List(manager, "http_filters") {
			if Object(entry)["name"] != name {
				kept = append(kept, entry)
			}
		}
		if manager != nil {
			manager["http_filters"] = kept
		}
		return nil
	}
}

// Edits returns an Edit that applies several in this order; nil ones are skipped.
func Edits(edits ...func(Bootstrap) error) func(Bootstrap) error {
	return func(b Bootstrap) error {
		for _, edit := range edits {
			if edit == nil {
				continue
			}
			if err := edit(b); err != nil {
				return err
			}
		}
		return nil
	}
}
