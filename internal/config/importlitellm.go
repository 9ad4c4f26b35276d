package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// liteLLMSections are the top-level keys that an import reads.
var liteLLMSections = []string{"model_list", "router_settings", "litellm_settings", "general_settings"}

// liteLLMInstead has Weir's place of what LiteLLM's keys do, by the path in its file without indices. A key that ends in
// a dot stands for all below it.
var liteLLMInstead = map[string]string{
	"model_list.litellm_params.rpm":                   "an engine's limit is its slots: requests wait instead of failing",
	"model_list.litellm_params.tpm":                   "an engine's limit is its slots: requests wait instead of failing",
	"model_list.litellm_params.order":                 "engines are equal; scheduling.policy: mindrouter has a priority for each",
	"model_list.litellm_params.max_budget":            "Weir knows no prices",
	"model_list.litellm_params.budget_duration":       "Weir knows no prices",
	"model_list.model_info.":                          "engines state their abilities (docs/endpoints.md#what-engines-can-do)",
	"router_settings.routing_strategy":                "Weir picks the engine that has most of the prompt, or least to do (docs/routing.md)",
	"router_settings.routing_strategy_args.":          "Weir picks the engine that has most of the prompt, or least to do (docs/routing.md)",
	"router_settings.num_retries":                     "Envoy retries (retry_policy of the route)",
	"router_settings.timeout":                         "fairRequestQueue.queueTTL is the longest wait; Envoy limits the answer",
	"router_settings.stream_timeout":                  "fairRequestQueue.queueTTL is the longest wait; Envoy limits the answer",
	"router_settings.allowed_fails":                   "requestQueueController.circuits",
	"router_settings.allowed_fails_policy.":           "requestQueueController.circuits",
	"router_settings.cooldown_time":                   "requestQueueController.circuits",
	"router_settings.retry_policy.":                   "Envoy retries (retry_policy of the route)",
	"router_settings.fallbacks.":                      "a model's targets share its requests by weight; none stands by",
	"router_settings.context_window_fallbacks.":       "a request goes where its context fits, among the model's engines",
	"router_settings.redis_host":                      "one leader has the queue (docs/high-availability.md)",
	"router_settings.redis_port":                      "one leader has the queue (docs/high-availability.md)",
	"router_settings.redis_password":                  "one leader has the queue (docs/high-availability.md)",
	"router_settings.redis_url":                       "one leader has the queue (docs/high-availability.md)",
	"router_settings.enable_pre_call_checks":          "a request goes where its context fits",
	"router_settings.provider_budget_config.":         "Weir knows no prices",
	"litellm_settings.num_retries":                    "Envoy retries (retry_policy of the route)",
	"litellm_settings.request_timeout":                "fairRequestQueue.queueTTL is the longest wait; Envoy limits the answer",
	"litellm_settings.fallbacks.":                     "a model's targets share its requests by weight; none stands by",
	"litellm_settings.default_fallbacks.":             "a model's targets share its requests by weight; none stands by",
	"litellm_settings.context_window_fallbacks.":      "a request goes where its context fits, among the model's engines",
	"litellm_settings.max_budget":                     "Weir knows no prices: a quota counts tokens (docs/quotas.md)",
	"litellm_settings.budget_duration":                "Weir knows no prices: a quota counts tokens (docs/quotas.md)",
	"litellm_settings.max_internal_user_budget":       "Weir knows no prices: a quota counts tokens (docs/quotas.md)",
	"litellm_settings.internal_user_budget_duration":  "Weir knows no prices: a quota counts tokens (docs/quotas.md)",
	"litellm_settings.default_internal_user_params.":  "Weir knows no prices, and counts no requests per minute: a quota counts tokens (docs/quotas.md)",
	"litellm_settings.default_team_settings.":         "Weir knows no prices and has no teams' keys; weights and quotas are by tenant (docs/quotas.md)",
	"litellm_settings.priority_reservation_settings.": "a role without requests leaves its share to the others",
	"litellm_settings.cache":                          "Weir caches no answers; engines cache prompts",
	"litellm_settings.cache_params.":                  "Weir caches no answers; engines cache prompts",
	"litellm_settings.callbacks.":                     "metrics and traces (docs/metrics.md)",
	"litellm_settings.success_callback.":              "metrics and traces (docs/metrics.md)",
	"litellm_settings.failure_callback.":              "metrics and traces (docs/metrics.md)",
	"general_settings.master_key":                     "Envoy checks credentials (config/envoy/api-keys.yaml, jwt.yaml)",
	"general_settings.database_url":                   "Envoy checks credentials (config/envoy/api-keys.yaml, jwt.yaml)",
	"general_settings.global_max_parallel_requests":   "the sum of the engines' slots",
}

// usersRole is the role of tenants without one, where LiteLLM has limits for each user.
const usersRole = "user"

// ImportLiteLLM converts the YAML file of LiteLLM's proxy to a document over the recommended profile, and the engines in
// it: its model list, weights, parallel requests, shares of priorities, and tokens per minute of users. A deployment
// without an api_base is another provider's. An impossible value of something that is converted is an error with its path;
// the error is Problems and lists all of them. No value of a key that is not converted is printed, since it may be a secret.
func ImportLiteLLM(text []byte) (Imported, error) {
	im := liteLLMImport{tree: newTree()}
	root, problems := parseYAML(text)
	im.problems = problems
	var err error
	if im.Document, err = Profile(ProfileRecommended); err != nil {
		return Imported{}, err
	}
	switch {
	case len(problems) > 0:
	case root == nil || root.Kind != yaml.MappingNode:
		im.problems = Problems{{Message: "must be a mapping with model_list"}}
	case !slices.ContainsFunc(liteLLMSections, func(key string) bool { return slices.Contains(keysOf(root), key) }):
		im.problems = Problems{{Message: "must be a file of LiteLLM's proxy, with one of " + strings.Join(liteLLMSections, ", ")}}
	default:
		im.sections(root)
	}
	if err := im.found(); err != nil {
		return Imported{}, err
	}
	if err := im.Document.Validate(); err != nil {
		return Imported{}, err
	}
	im.tell()
	return im.Imported, nil
}

// liteLLMImport is the state of an import.
type liteLLMImport struct {
	Imported
	tree
	aliased int // targets of aliases
}

// mostAliased is the largest number of targets of all aliases.
const mostAliased = 10_000

func (im *liteLLMImport) sections(root *yaml.Node) {
	im.pairs("", root, func(key, path string, value *yaml.Node) {
		if key == "model_list" { // before aliases of its models
			im.items(path, value, im.deployment)
		}
	})
	im.pairs("", root, func(key, path string, value *yaml.Node) {
		switch key {
		case "model_list":
		case "router_settings":
			im.pairs(path, value, im.routerSetting)
		case "litellm_settings":
			im.pairs(path, value, im.setting)
		case "general_settings":
			im.pairs(path, value, im.generalSetting)
		default:
			im.ignore(path, value)
		}
	})
	for i := range im.Document.Models { // a model that stands for itself needs no target
		if m := &im.Document.Models[i]; len(m.Targets) == 1 && m.Targets[0].Name == m.Name {
			m.Targets = nil
		}
	}
}

// deployment converts an entry of the model list.
func (im *liteLLMImport) deployment(path string, node *yaml.Node) {
	var name, model, base string
	weight, slots := int64(1), int64(0)
	im.pairs(path, node, func(key, path string, value *yaml.Node) {
		switch key {
		case "model_name":
			name = im.text(path, value)
		case "litellm_params":
			im.pairs(path, value, func(key, path string, value *yaml.Node) {
				switch key {
				case "model":
					model = im.text(path, value)
				case "api_base", "base_url":
					base = im.text(path, value)
				case "weight":
					weight = im.whole(path, value, 1, 1_000_000)
				case "max_parallel_requests":
					slots = im.whole(path, value, 1, 1<<31-1)
				case "api_key": // the engine's, which Envoy has
				default:
					im.ignore(path, value)
				}
			})
		case "model_info":
			im.pairs(path, value, func(_, path string, value *yaml.Node) { im.ignore(path, value) })
		default:
			im.ignore(path, value)
		}
	})
	switch {
	case name == "":
		im.problems.add(join(path, "model_name"), name, "must be the name that clients ask for")
		return
	case model == "":
		im.problems.add(join(path, "litellm_params.model"), model, "must be PROVIDER/MODEL")
		return
	}
	if _, of, ok := strings.Cut(model, "/"); ok {
		model = of // without the provider
	}
	if base == "" {
		im.note("%s: model %q is another provider's, not an engine's: requests for it do not go through Weir", path, name)
		return
	}
	if engine := im.serve(join(path, "litellm_params.api_base"), base, model); engine != nil {
		engine.Slots = max(engine.Slots, slots)
	}
	im.target(name, model, weight)
}

func (im *liteLLMImport) routerSetting(key, path string, value *yaml.Node) {
	if key != "model_group_alias" {
		im.ignore(path, value)
		return
	}
	im.pairs(path, value, func(alias, path string, value *yaml.Node) {
		group := ""
		if node := im.at(path, value); node != nil && node.Kind == yaml.MappingNode {
			im.pairs(path, node, func(key, path string, value *yaml.Node) {
				if key == "model" {
					group = im.text(path, value)
				}
			})
		} else {
			group = im.text(path, value)
		}
		i := slices.IndexFunc(im.Document.Models, func(m Model) bool { return m.Name == group })
		if i < 0 {
			im.problems.add(path, group, "must be a model_name of the model_list")
			return
		}
		targets := im.Document.Models[i].Targets
		if im.aliased += len(targets); im.aliased > mostAliased {
			im.problems.add(path, group, "the aliases have more than %d targets", mostAliased)
			return
		}
		for _, t := range slices.Clone(targets) {
			im.target(alias, t.Name, t.Weight)
		}
	})
}

func (im *liteLLMImport) setting(key, path string, value *yaml.Node) {
	switch key {
	case "priority_reservation":
		im.pairs(path, value, im.reservation)
	case "default_internal_user_params":
		im.pairs(path, value, func(key, path string, value *yaml.Node) {
			if key != "tpm_limit" {
				im.ignore(path, value)
				return
			}
			role := im.role(usersRole)
			role.Quota = RoleQuota{Tokens: im.whole(path, value, 1, 1_000_000_000_000), Window: Duration(time.Minute)}
			im.Document.Roles[usersRole] = role
			im.Document.Flows.DefaultRole = usersRole
		})
	default:
		im.ignore(path, value)
	}
}

// reservation converts the share of a priority, a number or an object with its value, into the weight of a role.
func (im *liteLLMImport) reservation(name, path string, value *yaml.Node) {
	node := im.at(path, value)
	if node != nil && node.Kind == yaml.MappingNode {
		im.pairs(path, node, func(key, path string, value *yaml.Node) {
			if key == "value" {
				im.reservation(name, path, value)
			}
		})
		return
	}
	text := im.text(path, value)
	share, err := ParseDecimal(text)
	if err != nil || share < One/1000 {
		im.problems.add(path, text, "must be a share of at least 0.001")
		return
	}
	role := im.role(name)
	role.Weight = share
	im.Document.Roles[name] = role
}

// role returns the role of a name; it makes the first ones.
func (im *liteLLMImport) role(name string) Role {
	if im.Document.Roles == nil {
		im.Document.Roles = map[string]Role{}
	}
	if len(im.Document.Flows.Role) == 0 {
		im.Document.Flows.Role = []string{"metadata:envoy.filters.http.jwt_authn/payload/priority"}
	}
	role, ok := im.Document.Roles[name]
	if !ok {
		role.Weight = One
	}
	return role
}

func (im *liteLLMImport) generalSetting(key, path string, value *yaml.Node) {
	if key != "max_parallel_requests" {
		im.ignore(path, value)
		return
	}
	im.Document.RequestQueueController.MaxInFlightPerFlow = im.whole(path, value, 1, 1<<31-1)
}

// tell notes what is ignored, with what Weir has instead, and what to consider.
func (im *liteLLMImport) tell() {
	im.Notes = append(im.Notes, im.instead(liteLLMInstead)...)
	if len(im.Document.Roles) > 0 {
		im.note("flows.role takes the role of a tenant from %s, which the issuer of the tokens must set. The keys of a LiteLLM priority "+
			"share its part; here each tenant has the weight of its role", strings.Join(im.Document.Flows.Role, ", "))
	}
	if len(im.Engines) == 0 {
		im.note("the file has no engine with an address")
	}
}
