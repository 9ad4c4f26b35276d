package config

// Decisions configures decision records.
type Decisions struct {
	// Share of the requests that have a decision record: candidates, scores, constraints failed, and what is known of the flow.
	// The same requests are chosen by every replica, by their x-request-id. From 0 to 1.
	//
	// Default: The recording has all decisions already; records are for other programs to read.
	Sample Decimal `yaml:"sample" default:"0" sets:"streams.Sample"`
	// Where records go when their requests have ended: log or file.
	//
	// Default: A log is there wherever Weir runs.
	Sink string `yaml:"sink" default:"log" sets:"sink.Kind"`
	// File to which records are appended with sink: file, one line of JSON each; an absolute path. Its directory must exist.
	//
	// Default: No path is right everywhere.
	File string `yaml:"file" default:"''" sets:"sink.Path"`
	// Size at which the file is renamed to FILE.1, in place of the one before, and another one begins. From 65536 to 1099511627776.
	//
	// Default: Some ten thousand records, and no disk is full by twice as much.
	MaxFileBytes int64 `yaml:"maxFileBytes" default:"67108864" sets:"sink.MaxBytes"`
	// Tenants that get the record of a request's decision in the response header x-weir-decision if they ask with x-weir-explain: 1;
	// anonymous: requests without an identity; "*": all.
	//
	// Default: A record names engines and their load, which may be the operator's secret.
	Explain []string `yaml:"explain" default:"[]" sets:"streams.Explain"`
}
