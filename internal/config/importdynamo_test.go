package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

var dynamoSections = []reflect.Type{reflect.TypeFor[dynamoFile](), reflect.TypeFor[dynamoBucket](), reflect.TypeFor[dynamoClass]()}

// Every field of Dynamo's file becomes its key.
func TestImportDynamoConvertsEveryField(t *testing.T) {
	text := contents(t, "testdata", "dynamo", "families.yaml")
	wantNamed(t, "testdata/dynamo/families.yaml", text+"models", dynamoSections...)
	im, err := ImportDynamo([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d := im.Document
	if p := d.PolicyClass; p.DefaultFamily != "standard" || !slices.Equal(p.UncachedBuckets, []Bucket{{0, "cached"}, {3072, "uncached"}}) {
		t.Errorf("%+v", p)
	}
	cached, uncached, probes := d.Classes[0], d.Classes[1], d.Classes[4]
	if cached.Name != "std-cached" || cached.Family != "standard" || cached.Bucket != "cached" || cached.Order != "wspt" || cached.Quantum != 2048 ||
		*cached.BusyTokens != 10_000_000 || *cached.BusyFraction != mustDecimal("0.5") || *cached.BusyRatio != mustDecimal("0.95") || cached.QueueLimitPerBackend != nil {
		t.Errorf("%+v", cached)
	}
	if uncached.Order != "" || *uncached.BusyTokens != 10 || uncached.BusyFraction != nil || uncached.BusyRatio != nil {
		t.Errorf("%+v", uncached)
	}
	if probes.Family != "" || *probes.QueueLimitPerBackend != 1 || *probes.RawTokenLimitPerBackend != 5 || *probes.CachedTokenLimitPerBackend != 3 {
		t.Errorf("%+v", probes)
	}
}

// A file that Dynamo rejects gets an error with its path in Dynamo's file, its value and the allowed values.
func TestImportDynamoProblems(t *testing.T) {
	const head = "default_policy_family: std\nuncached_isl_buckets: [ { min_tokens: 0, bucket: cached }, { min_tokens: 64, bucket: uncached } ]\npolicy_classes:\n"
	const cells = "- { name: a, policy_family: std, cache_bucket: cached, quantum: 1 }\n- { name: b, policy_family: std, cache_bucket: uncached, quantum: 1 }\n"
	if _, err := ImportDynamo([]byte(head + cells)); err != nil {
		t.Fatal(err)
	}
	wantProblems(t, ImportDynamo, map[string][]string{
		head + "- { name: a, policy_family: std, cache_bucket: cached, quantum: 1 }\n": {
			`uncached_isl_buckets: must each have a class of every family: "uncached" has none in the family "std" (line 2)`,
		},
		head + cells + "- { name: c, policy_family: std, cache_bucket: cached, quantum: 1 }": {
			`policy_classes[2].cache_bucket: "cached": must be in one class of the family "std" only, and is in "a" too (line 6)`,
		},
		head + cells + "- { name: c, policy_family: invalid/family, cache_bucket: cached, quantum: 1 }\n- { name: d, policy_family: invalid/family, cache_bucket: uncached, quantum: 1 }": {
			`policy_classes[2].policy_family: "invalid/family": must consist of letters, digits, '_', '.' and '-' (line 6)`,
			`policy_classes[3].policy_family: "invalid/family": must consist of letters, digits, '_', '.' and '-' (line 7)`,
		},
		head + cells + "- { name: c, policy_family: std, cache_bucket: warm, quantum: 1 }": {
			`policy_classes[2].cache_bucket: "warm": must be one of cached, uncached (line 6)`,
		},
		head + cells + "- { name: c, policy_family: std, quantum: 1 }\n- { name: d, cache_bucket: cached, quantum: 1 }": {
			`policy_classes[2].cache_bucket: "": must be given with policy_family; a class without both is an explicit one`,
			`policy_classes[3].policy_family: "": must be given with cache_bucket; a class without both is an explicit one`,
		},
		head + cells + "- { name: std, quantum: 1 }": {
			`policy_classes[2].name: "std": must not be the name of a family, since requests could not tell them apart (line 6)`,
		},
		head + cells + "- { name: a, quantum: 1 }\n- { name: a b, quantum: 1 }\n- { quantum: 1 }": {
			`policy_classes[2].name: "a": must be unique (line 6)`,
			`policy_classes[3].name: "a b": must consist of letters, digits, '_', '.' and '-' (line 7)`,
			`policy_classes[4].name: "": must be given`,
		},
		strings.Replace(head, "min_tokens: 0", "min_tokens: 1", 1) + cells: {
			`uncached_isl_buckets[0].min_tokens: 1: must be 0 in the first bucket: every request has one (line 2)`,
		},
		strings.Replace(head, "bucket: uncached", "bucket: cached", 1) + cells: {
			`uncached_isl_buckets[1].bucket: "cached": must be unique (line 2)`,
			`policy_classes[1].cache_bucket: "uncached": must be one of cached, cached (did you mean cached?) (line 5)`,
		},
		strings.Replace(head, "uncached }", "uncached }, { min_tokens: 32, bucket: third }", 1) + cells + "- { name: c, policy_family: std, cache_bucket: third, quantum: 1 }": {
			`uncached_isl_buckets[2].min_tokens: 32: must be above that of the bucket before (64) (line 2)`,
		},
		head + cells + "- { name: c, quantum: 0, queue_policy: lcfs, busy_worker_ratio: 16.0, prefill_busy_threshold: 1 }\n- { name: d, busy_worker_ratio: 0.5 }\n" +
			"- { name: e, quantum: 1, queue_policy: edf, prefill_busy_threshold: -1, prefill_busy_threshold_frac: -0.5, busy_worker_ratio: 0 }": {
			`policy_classes[2].quantum: 0: must be from 1 to 1073741824 (line 6)`,
			`policy_classes[2].queue_policy: "lcfs": must be one of fcfs, wspt (did you mean fcfs?) (line 6)`,
			`policy_classes[2].busy_worker_ratio: 16: must be above 0 and at most 1 (line 6)`,
			`policy_classes[3].quantum: 0: must be from 1 to 1073741824`,
			`policy_classes[3].busy_worker_ratio: 0.5: needs prefill_busy_threshold or prefill_busy_threshold_frac (line 7)`,
			`policy_classes[4].queue_policy: "edf": must be one of fcfs, wspt (line 8)`,
			`policy_classes[4].busy_worker_ratio: 0: must be above 0 and at most 1 (line 8)`,
			`policy_classes[4].prefill_busy_threshold: -1: must be from 0 to 1099511627776 (line 8)`,
			`policy_classes[4].prefill_busy_threshold_frac: -0.5: must be from 0 to 1000 (line 8)`,
		},
		head + cells + "- { name: c, quantum: 1, request_queue_limit_per_worker: -1, raw_isl_token_queue_limit_per_worker: -2, cached_token_queue_limit_per_worker: -3 }": {
			`policy_classes[2].request_queue_limit_per_worker: -1: must be from 0 to 1099511627776 (line 6)`,
			`policy_classes[2].raw_isl_token_queue_limit_per_worker: -2: must be from 0 to 1099511627776 (line 6)`,
			`policy_classes[2].cached_token_queue_limit_per_worker: -3: must be from 0 to 1099511627776 (line 6)`,
		},
		strings.Replace(head, "family: std", "family: none", 1) + cells: {`default_policy_family: "none": must be one of std (line 1)`},
		strings.Replace(head, "default_policy_family: std\n", "", 1) + cells: {
			`default_policy_family: "": must be the family of requests that name none`,
		},
		"policy_classes: [ { name: a, quantum: 1, quantums: 2 } ]\ndefault_family: x": {
			`default_policy_family: "": must be the family of requests that name none`,
			`policy_classes[0].quantums: unknown field (did you mean quantum?) (line 1)`,
			`default_family: unknown field (line 2)`,
		},
		"models: { a.b: { policy_classes: [ { name: a, policy_family: f, cache_bucket: x, quantum: 0 } ], uncached_isl_buckets: [ { min_tokens: 2, bucket: c } ], default_policy_family: g, other: 1 } }": {
			`models.a.b.other: unknown field (line 1)`,
			`models.a.b.policy_classes[0].quantum: 0: must be from 1 to 1073741824 (line 1)`,
			`models.a.b.policy_classes[0].cache_bucket: "x": must be one of c (did you mean c?) (line 1)`,
			`models.a.b.uncached_isl_buckets: must each have a class of every family: "c" has none in the family "f" (line 1)`,
			`models.a.b.uncached_isl_buckets[0].min_tokens: 2: must be 0 in the first bucket: every request has one (line 1)`,
			`models.a.b.default_policy_family: "g": must be one of f (did you mean f?) (line 1)`,
		},
		"models: { m: {} }": {
			`models.m.policy_classes: must have a class`, `models.m.default_policy_family: "": must be the family of requests that name none`,
		},
		"[": {"not YAML: line 1: did not find expected node content"},
	})
}

// The page about coming from Dynamo names every field of Dynamo's file, and its example can be imported.
func TestDynamoPage(t *testing.T) {
	page := contents(t, "..", "..", "docs", "dynamo.md")
	wantNamed(t, "docs/dynamo.md", page, dynamoSections...)
	_, example, _ := strings.Cut(page, "# policy.yaml\n")
	example, _, ok := strings.Cut(example, "```")
	if im, err := ImportDynamo([]byte(example)); err != nil || !ok || len(im.Document.Classes) != 2 {
		t.Errorf("the example: %v", err)
	}
}

// Without a file there is one class, called default, and without an engine a request fails at once.
func TestDynamoWithoutAFile(t *testing.T) {
	d, err := Profile(ProfileDynamo)
	if err != nil {
		t.Fatal(err)
	}
	cfg := d.FlowcontrolConfig()
	if n := len(cfg.Queue.Classes); n != 0 || len(cfg.Queue.Tiers) != 1 || cfg.Queue.Tiers[0].Name != "default" || cfg.HoldWhenEmpty {
		t.Errorf("%d classes, tiers %+v, held without an engine: %t", n, cfg.Queue.Tiers, cfg.HoldWhenEmpty)
	}
}
