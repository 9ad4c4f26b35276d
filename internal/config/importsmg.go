package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/spelling"
)

// smgTenantHeader is the header that names the tenant in SMG unless it is configured otherwise.
const smgTenantHeader = "x-smg-tenant-id"

// ImportSMG converts a YAML file of SMG's priority scheduler to a document over the smg-priority profile. The notes
// tell the operator what is ignored, what differs and what to consider. An unknown field or an impossible value is an
// error with its path in the file; the error is Problems and lists all of them.
func ImportSMG(text []byte) (Imported, error) {
	file, prefix, dec := readSMG(text)
	im := smgImport{file: file, prefix: prefix, problems: dec.problems}
	var err error
	if im.Document, err = Profile(ProfileSMG); err != nil {
		return Imported{}, err
	}
	im.classes()
	im.tenants()
	im.others()
	if problems := im.problems.locate(dec.lines); len(problems) > 0 {
		return Imported{}, problems.err()
	}
	if err := im.Document.Validate(); err != nil { // what the file's own checks above have let through
		return Imported{}, err
	}
	if profile, err := Profile(ProfileSMG); err == nil {
		im.Document.ReplaceTiers = !reflect.DeepEqual(im.Document.Tiers, profile.Tiers)
	}
	im.offers()
	return im.Imported, nil
}

// readSMG decodes the file. prefix is the path of its fields.
func readSMG(text []byte) (file smgFile, prefix string, dec *decoder) {
	dec = &decoder{lines: map[string]int{}}
	root, problems := parseYAML(text)
	dec.problems = problems
	if root == nil {
		return file, "", dec
	}
	if slices.ContainsFunc(keysOf(root), func(key string) bool { return key == "priority_scheduler" }) {
		var nested smgNested
		dec.decode("", root, reflect.ValueOf(&nested).Elem())
		return nested.PriorityScheduler, "priority_scheduler.", dec
	}
	dec.decode("", root, reflect.ValueOf(&file).Elem())
	return file, "", dec
}

func keysOf(root *yaml.Node) []string {
	var keys []string
	if root.Kind == yaml.MappingNode {
		for i := 0; i < len(root.Content); i += 2 {
			keys = append(keys, root.Content[i].Value)
		}
	}
	return keys
}

// smgImport is the state of an import.
type smgImport struct {
	Imported
	file     smgFile
	prefix   string
	problems Problems
}

// classes changes the tiers. SMG replaces a whole class that the file names; here, values that the file does not give
// are kept.
func (im *smgImport) classes() {
	for _, name := range slices.Sorted(maps.Keys(im.file.Classes)) {
		rank := slices.Index(smgClasses, name)
		path := im.prefix + join("classes", name)
		if rank < 0 {
			im.problems.add(path, name, "must be one of %s%s", strings.Join(smgClasses, ", "), spelling.Suggest(name, smgClasses))
			continue
		}
		im.class(path+".", im.file.Classes[name], &im.Document.Tiers[rank])
	}
	total, largest := int64(0), int64(1)
	for _, t := range im.Document.Tiers {
		total += *t.QueueSize
		largest = max(largest, *t.QueueSize)
	}
	im.Document.FairRequestQueue.TotalCapacity = max(1, total)
	im.Document.FairRequestQueue.FlowCapacity = largest
}

func (im *smgImport) class(path string, c smgClass, t *Tier) {
	floor := c.ReservedFloor
	if c.Reserved != nil {
		if floor != nil {
			im.problems.add(path+"reserved", *c.Reserved, "given twice (also as reserved_floor)")
		}
		floor = c.Reserved
	}
	if floor != nil && Within(&im.problems, path+"reserved_floor", *floor, 0, maxReserved) {
		t.ReservedFloor = *floor
	}
	if s := c.ReservedPerSlot; s != nil && atLeast(&im.problems, path+"reserved_per_slot", *s, 0) {
		t.ReservedPerSlot = *s
	} else if s == nil && t.ReservedPerSlot > 0 {
		im.note("%sreserved_per_slot: not given: the default %s stays, where SMG would take 0; write "+
			"reserved_per_slot: 0 to have that", path, t.ReservedPerSlot)
	}
	if n := c.QueueSize; n != nil && Within(&im.problems, path+"queue_size", *n, 0, maxQueueSize) {
		t.QueueSize = new(*n)
	}
	if n := c.QueueTimeoutSecs; n != nil &&
		Within(&im.problems, path+"queue_timeout_secs", *n, 1, int64(longestHold.Std()/time.Second)) {
		t.QueueTimeout = new(seconds(*n))
	}
	if n := c.StarvationThresholdSecs; n != nil &&
		Within(&im.problems, path+"starvation_threshold_secs", *n, 1, maxThreshold) {
		t.StarvationThreshold = new(seconds(*n))
	}
	if c.CanPreempt != nil {
		t.CanPreempt = *c.CanPreempt
	}
}

// Limits of a class: SMG's reserved_floor has 16 bits, queue_size is bounded so that four of them can be added, and the
// threshold so that it fits a duration.
const (
	maxReserved  = 65_535
	maxQueueSize = 1 << 29
	maxThreshold = 1_000_000_000
)

func seconds(n int64) Duration { return Duration(time.Duration(n) * time.Second) }
