package config

import (
	"reflect"
	"strconv"
	"time"

	"github.com/weir-epp/weir/pkg/decision/sink"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A document is converted to each package's own configuration, where its values are checked (problemsOfParts). So
// conversion accepts any document, and never turns an invalid value into a valid one. The sets tags of the keys say
// which field each of them sets; only what needs more than one key is written out here.

// The packages' configurations, as the sets tags call them.
const (
	controllerPart = "controller"
	streamsPart    = "streams"
	schedulingPart = "scheduling"
	recordingPart  = "recording"
	sinkPart       = "sink"
)

// FlowcontrolConfig returns the configuration of the controller, its queue and its stock.
func (d *Document) FlowcontrolConfig() flowcontrol.Config {
	cfg := flowcontrol.DefaultConfig()
	mostLabels := cfg.MaxLabels
	cfg.Queue = fairqueue.Config{}
	d.convert(controllerPart, &cfg)
	// Labels take memory for good, flows only while they are known: fewer flows mean fewer labels, not more.
	cfg.MaxLabels = min(mostLabels, cfg.MaxLabels)
	for i := range cfg.Tiers[:min(d.highestUsable(), len(cfg.Tiers))] { // what nobody may use is not held back; Warnings says so
		t := &cfg.Tiers[i]
		t.ReservedFloor, t.ReservedPerSlot = min(t.ReservedFloor, 0), min(t.ReservedPerSlot, 0)
	}
	switch slots := d.RequestQueueController.SlotsPerBackend; {
	case slots == nil:
	case *slots == Unbounded:
		cfg.Stock.SlotsPerBackend, cfg.Stock.Unbounded = 0, true
	case *slots == Auto:
		cfg.Stock.SlotsPerBackend, cfg.Stock.Follow = 0, d.automatic()
	}
	if n := len(d.Flows.Levels); n > 0 {
		cfg.Queue.Levels = n
	}
	cfg.Queue.Priorities = d.PolicyClass.PriorityHeader != "" || d.PolicyClass.StrictPriorityHeader != "" || len(d.PolicyClass.Hints) > 0
	for i, c := range d.Classes {
		if c.Order == "" {
			cfg.Queue.Classes[i].Order = cfg.Queue.Order
		}
	}
	return cfg
}

// SchedulingConfig returns the configuration of the scheduler.
func (d *Document) SchedulingConfig() scheduling.Config {
	var cfg scheduling.Config
	d.convert(schedulingPart, &cfg)
	return cfg
}

// RecordingConfig returns the configuration of the recording.
func (d *Document) RecordingConfig() (cfg recording.Config) {
	d.convert(recordingPart, &cfg)
	return cfg
}

// SinkConfig returns the configuration of the sink of decision records.
func (d *Document) SinkConfig() (cfg sink.Config) {
	d.convert(sinkPart, &cfg)
	return cfg
}

// ExtprocConfig returns the configuration of the streams.
func (d *Document) ExtprocConfig() extproc.Config {
	cfg := extproc.DefaultConfig() // for what has no key
	d.convert(streamsPart, &cfg)
	delete(cfg.TenantPolicies, request.OtherTenants) // no tenant's name (tenantProblems)
	for tenant, p := range d.TenantPolicies {
		if cfg.TenantPolicies[tenant] == (request.TenantPolicy{}) && p.Quota != (TenantQuota{}) { // it says nothing of tiers
			delete(cfg.TenantPolicies, tenant)
		}
	}
	if d.Criticality.MaxClass != "" {
		cfg.TenantPolicies[request.OtherTenants] = request.TenantPolicy{MaxClass: d.Criticality.MaxClass}
	}
	cfg.Quotas = d.hasQuotas()
	cfg.OneFlow = d.Flows.Discipline == DisciplineNone
	cfg.LongestWait = d.longestWait()
	return cfg
}

// longestWait returns the longest TTL of any tier.
func (d *Document) longestWait() time.Duration {
	var longest Duration
	for _, t := range d.Tiers {
		if t.QueueTimeout != nil {
			longest = max(longest, *t.QueueTimeout)
		} else {
			longest = max(longest, d.FairRequestQueue.QueueTTL)
		}
	}
	return longest.Std()
}

// convert sets the fields of a package's configuration, a pointer, to the values of the keys that set them.
func (d *Document) convert(part string, config any) {
	for k := range tagged("sets") {
		for _, field := range k.sets(part) {
			each(reflect.ValueOf(*d), k.path, nil, func(elements []any, v reflect.Value) {
				reach(reflect.ValueOf(config).Elem(), pathOf(field, elements), func(to reflect.Value) { k.assign(to, v) })
			})
		}
	}
}

// reach calls f with the value at a path, which f may set.
func reach(v reflect.Value, path invalid.Path, f func(reflect.Value)) {
	if len(path) == 0 {
		f(v)
		return
	}
	switch step := path[0].(type) {
	case string:
		reach(v.FieldByName(step), path[1:], f)
	case int:
		reach(v.Index(step), path[1:], f)
	case invalid.Key: // a value in a map cannot be set in place
		element := reflect.New(v.Type().Elem()).Elem()
		if present := v.MapIndex(reflect.ValueOf(string(step))); present.IsValid() {
			element.Set(present)
		}
		reach(element, path[1:], f)
		v.SetMapIndex(reflect.ValueOf(string(step)), element)
	}
}

// assign sets a package's field to a value of the key. Lists and maps of structs get elements that are zero, which the
// keys below set.
func (k key) assign(to, from reflect.Value) {
	unset, optional := k.Tag.Lookup("unset")
	switch words := enumerations[k.path]; {
	case words != nil:
		to.Set(words.value(from.String(), to.Type()))
	case optional:
		to.SetInt(given(from, unset))
	case from.Kind() == reflect.Pointer:
		to.SetZero()
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			to.Elem().Set(from.Elem().Convert(to.Type().Elem()))
		}
	case from.Kind() == reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		for _, of := range from.MapKeys() {
			element := reflect.Zero(to.Type().Elem())
			if !isList(from.Type()) {
				element = from.MapIndex(of).Convert(element.Type())
			}
			to.SetMapIndex(of, element)
		}
	case isList(from.Type()) && from.Len() > 0:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
	case isList(from.Type()):
		to.SetZero()
	default:
		to.Set(from.Convert(to.Type()))
	}
}

// given returns the number that a key has for a package in which unset stands for "not given". A given value is never
// mistaken for that: if it equals unset, given returns the number below it, which the package refuses.
func given(value reflect.Value, unset string) int64 {
	none, err := strconv.ParseInt(unset, 10, 64)
	if err != nil {
		panic("config: " + err.Error())
	}
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return none
		}
		value = value.Elem()
	}
	if n := value.Int(); n != none {
		return n
	}
	return none - 1
}
