package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// dynamoPolicies are the orders of a class in Dynamo's file.
var dynamoPolicies = []string{"fcfs", "wspt"}

// ImportDynamo converts a YAML file of Dynamo's policy-class queues to a document over the dynamo-drr profile. The notes
// tell the operator what differs and what to consider. An unknown field or an impossible value is an error with its path in
// the file; the error is Problems and lists all of them.
func ImportDynamo(text []byte) (Imported, error) {
	var file dynamoFile
	root, problems := parseYAML(text)
	dec := newDecoder(nil)
	dec.problems = problems
	if root != nil {
		dec.decode("", root, reflect.ValueOf(&file).Elem())
	}
	im := dynamoImport{models: slices.Sorted(maps.Keys(file.Models)), problems: dec.problems}
	var err error
	if im.Document, err = Profile(ProfileDynamo); err != nil {
		return Imported{}, err
	}
	im.profiles(&file, root != nil && len(problems) == 0)
	im.problems = append(im.problems, im.theirs(im.Document.problems())...)
	if problems := im.problems.locate(dec.lines); len(problems) > 0 {
		return Imported{}, problems.err()
	}
	im.offers()
	return im.Imported, nil
}

// dynamoImport is the state of an import.
type dynamoImport struct {
	Imported
	models   []string // those with profiles of their own
	places   []string // the path of each class of the document in the file
	problems Problems
}

// profiles converts the profiles of a file, which may be empty.
func (im *dynamoImport) profiles(file *dynamoFile, given bool) {
	policy := &im.Document.PolicyClass
	own := dynamoProfile{file.DefaultFamily, file.Buckets, file.Classes}
	switch {
	case !given:
	case len(file.Models) > 0 && reflect.DeepEqual(own, dynamoProfile{}): // Dynamo's class where no profile is
		im.Document.Classes = []Class{{Name: dynamoSynthetic, Quantum: 1}}
		im.places = []string{""}
		im.note("models: there is no profile for other models: they have one class, %q", dynamoSynthetic)
	default:
		policy.DefaultFamily = own.DefaultFamily
		for _, b := range own.Buckets {
			policy.UncachedBuckets = append(policy.UncachedBuckets, Bucket(b))
		}
		im.profile("", "", own)
	}
	for _, model := range im.models {
		own := file.Models[model]
		families := ModelFamilies{DefaultFamily: own.DefaultFamily}
		for _, b := range own.Buckets {
			families.UncachedBuckets = append(families.UncachedBuckets, ModelBucket(b))
		}
		if !reflect.DeepEqual(families, ModelFamilies{}) {
			if policy.ByModel == nil {
				policy.ByModel = map[string]ModelFamilies{}
			}
			policy.ByModel[model] = families
		}
		im.profile(join("models", model)+".", model, own)
	}
}

// dynamoSynthetic is the name of Dynamo's class where no profile is.
const dynamoSynthetic = "default"

// profile converts the classes of a profile whose fields have this path, and checks what only Dynamo demands.
func (im *dynamoImport) profile(path, model string, p dynamoProfile) {
	if len(p.Classes) == 0 {
		im.problems = append(im.problems, Problem{Path: path + "policy_classes", Message: "must have a class"})
	}
	if p.DefaultFamily == "" {
		im.problems.add(path+"default_policy_family", p.DefaultFamily, "must be the family of requests that name none")
	}
	for i, c := range p.Classes {
		place := index(path+"policy_classes", i)
		class := im.class(place+".", c)
		class.Model = model
		im.Document.Classes, im.places = append(im.Document.Classes, class), append(im.places, place)
	}
}

func (im *dynamoImport) class(path string, c dynamoClass) Class {
	out := Class{Name: c.Name, Quantum: c.Quantum, Family: c.Family, Bucket: c.Bucket, BusyTokens: c.BusyTokens, BusyFraction: c.BusyShare}
	switch {
	case c.Family != "" && c.Bucket == "":
		im.problems.add(path+"cache_bucket", c.Bucket, "must be given with policy_family; a class without both is an explicit one")
	case c.Family == "" && c.Bucket != "":
		im.problems.add(path+"policy_family", c.Family, "must be given with cache_bucket; a class without both is an explicit one")
	}
	if im.problems.oneOf(path+"queue_policy", c.QueuePolicy, dynamoPolicies); c.QueuePolicy != "fcfs" {
		out.Order = c.QueuePolicy // fcfs is the profile's
	}
	if ratio := c.BusyRatio; ratio != nil {
		switch {
		case *ratio <= 0 || *ratio > One:
			im.problems.add(path+"busy_worker_ratio", *ratio, "must be above 0 and at most 1")
		case c.BusyTokens == nil && c.BusyShare == nil:
			im.problems.add(path+"busy_worker_ratio", *ratio, "needs prefill_busy_threshold or prefill_busy_threshold_frac")
		default:
			out.BusyRatio = ratio
		}
	}
	out.QueueLimitPerBackend, out.RawTokenLimitPerBackend, out.CachedTokenLimitPerBackend = c.Requests, c.RawTokens, c.Cached
	return out
}

// theirs returns problems of the document by Dynamo's names for its keys.
func (im *dynamoImport) theirs(ps Problems) Problems {
	for i := range ps {
		ps[i].Path = im.path(ps[i].Path)
	}
	return ps
}

// path returns the path in Dynamo's file of a key of the document.
func (im *dynamoImport) path(key string) string {
	if m := classKey.FindStringSubmatch(key); m != nil {
		n, _ := strconv.Atoi(m[1])
		return join(im.places[n], dynamoKeys[m[2]])
	}
	key, model := strings.TrimPrefix(key, "policyClass."), ""
	for _, m := range im.models {
		if rest, ok := strings.CutPrefix(key, join("byModel", m)+"."); ok {
			key, model = rest, join("models", m)
		}
	}
	for _, r := range [][2]string{{"defaultFamily", "default_policy_family"}, {"uncachedBuckets", "uncached_isl_buckets"}, {"minTokens", "min_tokens"}, {"classes", "policy_classes"}} {
		key = strings.ReplaceAll(key, r[0], r[1])
	}
	return join(model, key)
}

// classKey matches the keys of a class.
var classKey = regexp.MustCompile(`^classes\[([0-9]+)\]\.([A-Za-z]+)$`)

// offers notes hints for the operator, and the warnings about the document itself.
func (im *dynamoImport) offers() {
	d := &im.Document
	busy := false
	for i, c := range d.Classes {
		busy = busy || c.BusyTokens != nil || c.BusyFraction != nil
		if c.BusyFraction != nil {
			im.note("%s.prefill_busy_threshold_frac: %s: is a share of the tokens that an engine processes in one step: state these "+
				"in the endpoints file (maxBatchedTokens) or in a pod's annotation; without them no endpoint is busy by it",
				im.places[i], *c.BusyFraction)
		}
	}
	if !busy {
		im.note("no class has a busy threshold: requests wait here while each backend has %d requests; set "+
			"requestQueueController.slotsPerBackend to the engines' batch slots", d.RequestQueueController.WatermarkPerBackend)
	}
	im.note("clients may name any class or family in the header %s: where they must not, the gateway has to set or strip it",
		strings.Join(d.PolicyClass.Headers, " or "))
	for _, w := range d.warnings(true) {
		im.note("in the new file: %s", w.Error())
	}
}
