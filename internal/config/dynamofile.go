package config

// dynamoFile is a YAML file of Dynamo's policy-class queues, in Dynamo's own terms: the profile of all models, and those
// of single models, which replace it whole.
type dynamoFile struct {
	DefaultFamily string                   `yaml:"default_policy_family"`
	Buckets       []dynamoBucket           `yaml:"uncached_isl_buckets"`
	Classes       []dynamoClass            `yaml:"policy_classes"`
	Models        map[string]dynamoProfile `yaml:"models"`
}

// dynamoProfile is a profile of one model.
type dynamoProfile struct {
	DefaultFamily string         `yaml:"default_policy_family"`
	Buckets       []dynamoBucket `yaml:"uncached_isl_buckets"`
	Classes       []dynamoClass  `yaml:"policy_classes"`
}

// dynamoBucket is a bucket of uncached tokens.
type dynamoBucket struct {
	MinTokens int64  `yaml:"min_tokens"`
	Bucket    string `yaml:"bucket"`
}

// dynamoClass is a class's entry: of a family and a bucket, or an explicit one.
type dynamoClass struct {
	Name        string   `yaml:"name"`
	Family      string   `yaml:"policy_family"`
	Bucket      string   `yaml:"cache_bucket"`
	QueuePolicy string   `yaml:"queue_policy" default:"fcfs"`
	Quantum     int64    `yaml:"quantum"`
	BusyTokens  *int64   `yaml:"prefill_busy_threshold"`
	BusyShare   *Decimal `yaml:"prefill_busy_threshold_frac"`
	BusyRatio   *Decimal `yaml:"busy_worker_ratio"`
	Requests    *int64   `yaml:"request_queue_limit_per_worker"`
	RawTokens   *int64   `yaml:"raw_isl_token_queue_limit_per_worker"`
	Cached      *int64   `yaml:"cached_token_queue_limit_per_worker"`
}

// dynamoKeys has Dynamo's name for each key of a class that an import sets.
var dynamoKeys = map[string]string{
	"name": "name", "family": "policy_family", "bucket": "cache_bucket", "order": "queue_policy", "quantum": "quantum",
	"busyTokens": "prefill_busy_threshold", "busyFraction": "prefill_busy_threshold_frac", "busyRatio": "busy_worker_ratio",
	"queueLimitPerBackend":       "request_queue_limit_per_worker",
	"rawTokenLimitPerBackend":    "raw_isl_token_queue_limit_per_worker",
	"cachedTokenLimitPerBackend": "cached_token_queue_limit_per_worker",
	"model":                      "name",
}
