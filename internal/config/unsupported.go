package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// notYet are the fields that this build does not act upon: a value other than the wfq default (in a list: other than
// a new element's) is a problem. Switching a feature on is taking its line out.
var notYet = []string{
	"fairRequestQueue.capacityMode",
	"fairRequestQueue.tierMode",
	"fairRequestQueue.promotionBudget",
	"fairRequestQueue.topTier",
	"requestQueueController.maxInFlightPerFlow",
	"requestQueueController.maxInFlightPerFlowPerBackend",
	"requestQueueController.victimOrder",
	"flows.discipline",
	"flows.order",
	"tiers[].weight",
	"tiers[].queueSize",
	"tiers[].queueTimeout",
	"tiers[].starvationThreshold",
	"tiers[].canPreempt",
	"tiers[].reservedFloor",
	"tiers[].reservedPerSlot",
	"classes",
}

// unsupported reports the fields of notYet that are set. Values that come from the profile itself are one problem of
// the profile.
func (d Document) unsupported() Problems {
	var ps Problems
	base := Default()
	profile, err := Profile(d.Profile)
	if err != nil {
		profile = base
	}
	var fromProfile []string
	for _, path := range notYet {
		want := map[string]reflect.Value{}
		fieldsAt(reflect.ValueOf(base), path, "", want)
		chosen := map[string]reflect.Value{}
		fieldsAt(reflect.ValueOf(profile), path, "", chosen)
		got := map[string]reflect.Value{}
		for _, at := range fieldsAt(reflect.ValueOf(d), path, "", got) {
			value := got[at]
			switch {
			case isDefault(value, want[at]):
			case same(value, chosen[at]):
				fromProfile = append(fromProfile, at)
			default:
				ps.add(at, show(value), "not supported yet")
			}
		}
	}
	if len(fromProfile) > 0 {
		ps.add("profile", d.Profile, "not supported yet: this build does not act upon its %s",
			strings.Join(fromProfile, ", "))
	}
	return ps
}

// fieldsAt collects the values at a path of YAML keys, where [] stands for every element of a list, and answers
// their concrete paths in order.
func fieldsAt(v reflect.Value, path, at string, found map[string]reflect.Value) []string {
	name, rest, deeper := strings.Cut(path, ".")
	key, isList := strings.CutSuffix(name, "[]")
	i := slices.Index(fieldNames(v.Type()), key)
	if i < 0 {
		panic("config: no field " + path)
	}
	v, at = v.Field(i), join(at, key)
	if !isList {
		if deeper {
			return fieldsAt(v, rest, at, found)
		}
		found[at] = v
		return []string{at}
	}
	var paths []string
	for i := range v.Len() {
		paths = append(paths, fieldsAt(v.Index(i), rest, index(at, i), found)...)
	}
	return paths
}

// isDefault says whether v is what this build does: the wfq default, or, in an element that the defaults do not
// have, a new element's value (which is zero, or 1 for a weight).
func isDefault(v, want reflect.Value) bool {
	if want.IsValid() {
		return same(v, want)
	}
	weight, isWeight := reflect.TypeAssert[Decimal](v)
	return v.IsZero() || isWeight && weight == One
}

func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return false
	}
	if k := a.Kind(); (k == reflect.Map || k == reflect.Slice) && a.Len() == 0 && b.Len() == 0 {
		return true // nil and empty say the same
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// show is a value as a message names it.
func show(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return show(v.Elem())
	case reflect.Map, reflect.Slice:
		return shown(fmt.Sprintf("%d given", v.Len()))
	default:
		return v.Interface()
	}
}
