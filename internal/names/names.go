package names

// Bounds of the resources' demands.
const (
	// MaxNameBytes is the longest name of a model or a target. Requests may not name longer ones either.
	MaxNameBytes = 1024
	// MaxTargets is the largest number of targets of one model or rule.
	MaxTargets = 64
	// MaxWeight is the largest weight of a target; the smallest is 1.
	MaxWeight = 1_000_000
	// MaxNames is the largest number of models named by resources, and of objectives.
	MaxNames = 10_000
)

// File has the names of the configuration file.
type File struct {
	Objectives []Objective
	Models     []Model
}

// Names has the meaning of each name.
type Names struct {
	// Objectives has the file's in the file's order, then the others by name.
	Objectives []Objective
	// Models has the file's in the file's order, then the others by name.
	Models []Model
	// OtherTargets are the targets of models not in Models; empty: each is its own target.
	OtherTargets     []Target
	OtherTargetsFrom Origin
	// Verdicts has the result for each resource of the pool: objectives, rewrites, then models, the oldest first.
	Verdicts []Verdict
}

// Objective is a named priority.
type Objective struct {
	Name     string
	Priority int
	From     Origin
}

// Model is a model by its name in requests.
type Model struct {
	Name string
	// Criticality names a tier; empty: undeclared.
	Criticality     string
	CriticalityFrom Origin // the zero value if neither the file nor a resource sets it
	// Targets are the model's names at the model servers; empty: its own name.
	Targets     []Target
	TargetsFrom Origin
}

// Target is a target of a model, drawn with a probability of its weight over the sum of the weights.
type Target struct {
	Name   string
	Weight int
}

// The kinds of origins.
const (
	KindFile      = "file"
	KindObjective = "InferenceObjective"
	KindModel     = "InferenceModel"
	KindRewrite   = "InferenceModelRewrite"
)

// Origin is the source of a name: the file, or a resource.
type Origin struct {
	Kind string
	Name string // of the resource; empty for the file
}

// String returns "file", or kind and name as in InferenceModel/chat.
func (o Origin) String() string {
	if o.Name == "" {
		return o.Kind
	}
	return o.Kind + "/" + o.Name
}
