package config

// smgFile is a YAML file of SMG's priority scheduler, in SMG's own terms. The fields may also be nested under
// priority_scheduler. Every field is optional.
type smgFile struct {
	Classes        map[string]smgClass  `yaml:"classes"`
	TenantPolicies map[string]smgTenant `yaml:"tenant_policies"`

	// Keys that SMG reads from its command line, or from the surrounding file.
	Enabled           *bool   `yaml:"enabled"`
	DefaultMaxClass   *string `yaml:"default_max_class"`
	TrustTenantHeader *bool   `yaml:"trust_tenant_header"`
	TenantHeaderName  *string `yaml:"tenant_header_name"`

	// Fields without a use here, which are reported.
	TenantMetricTopN      *int64 `yaml:"tenant_metric_top_n"`
	Capacity              *int64 `yaml:"capacity"`
	TotalCapacity         *int64 `yaml:"total_capacity"`
	FallbackCapacity      *int64 `yaml:"fallback_capacity"`
	DefaultCapacity       *int64 `yaml:"default_capacity"`
	MaxConcurrentRequests *int64 `yaml:"max_concurrent_requests"`
}

// smgNested is a file that nests these fields.
type smgNested struct {
	PriorityScheduler smgFile `yaml:"priority_scheduler"`
}

// smgClass is one class's entry. Fields that it does not give keep their defaults.
type smgClass struct {
	ReservedFloor           *int64   `yaml:"reserved_floor"`
	Reserved                *int64   `yaml:"reserved"` // the former name of reserved_floor
	ReservedPerSlot         *Decimal `yaml:"reserved_per_slot"`
	QueueSize               *int64   `yaml:"queue_size"`
	QueueTimeoutSecs        *int64   `yaml:"queue_timeout_secs"`
	StarvationThresholdSecs *int64   `yaml:"starvation_threshold_secs"`
	CanPreempt              *bool    `yaml:"can_preempt"`
}

// smgTenant is one tenant's entry.
type smgTenant struct {
	MaxClass string `yaml:"max_class"`
}

// smgClasses are SMG's classes, highest first: the tiers of the smg-priority profile.
var smgClasses = []string{"system", "interactive", "default", "bulk"}
