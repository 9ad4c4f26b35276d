package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// llmdGateway is the gateway of their HTTPRoute where the values name none.
const llmdGateway = "inference-gateway"

// Values of their charts, by the path below router or inferenceExtension: the value of Weir's chart that takes it as it is.
var llmdValues = map[string]string{
	"epp.replicas": "replicas", "epp.env": "extraEnv", "epp.volumes": "extraVolumes", "epp.volumeMounts": "extraVolumeMounts",
	"epp.resources": "resources", "epp.affinity": "affinity", "epp.tolerations": "tolerations", "epp.podAnnotations": "podAnnotations",
	"epp.nodeSelector": "nodeSelector", "epp.podLabels": "podLabels", "epp.priorityClassName": "priorityClassName",
	"imagePullSecrets": "imagePullSecrets", "modelServers.matchLabels": "pool.matchLabels", "inferencePool.create": "pool.create",
	"inferencePool.failureMode": "pool.failureMode", "inferencePool.name": "pool.name", "inferenceObjectives": "objectives",
	"httpRoute.create": "httpRoute.enabled", "httpRoute.enabled": "httpRoute.enabled", "httpRoute.parentRefs": "httpRoute.parentRefs",
	"httpRoute.hostnames": "httpRoute.hostnames", "monitoring.prometheus.enabled": "metrics.serviceMonitor.enabled",
	"monitoring.interval": "metrics.serviceMonitor.interval", "monitoring.prometheus.auth.enabled": "metrics.auth.enabled",
	"monitoring.prometheus.extraLabels": "metrics.serviceMonitor.labels", "epp.enableLeaderElection": "leaderElection.enabled",
}

// llmdValuesInstead has Weir's place of their other values.
var llmdValuesInstead = map[string]string{
	"epp.image.":                        "image: Weir's own",
	"epp.extProcPort":                   "the ports are 9002, 9003 and 9090",
	"epp.grpcHealthPort":                "the ports are 9002, 9003 and 9090",
	"epp.extraContainerPorts.":          "the ports are 9002, 9003 and 9090",
	"epp.metricsPort":                   "the ports are 9002, 9003 and 9090",
	"extraServicePorts.":                "the ports are 9002, 9003 and 9090",
	"epp.deploymentStrategy.":           "a rolling update works, with --wait too",
	"epp.autoscaling.":                  "more replicas are no more throughput, since one has the queue",
	"epp.terminationGracePeriodSeconds": "drainSeconds + drainMarginSeconds",
	"modelServers.type":                 "engines are recognised by their metrics",
	"provider.":                         "the policies of gateways that Weir's chart knows are in docs/gateways.md",
	"gke.":                              "metrics (charts/weir/README.md)",
	"istio.":                            "gateway.provider: istio has a DestinationRule without limits",
	"sidecar.":                          "a container that is no Envoy needs a Deployment of its own",
	"httpRoute.requestTimeout":          "the chart's route has no time limit, since requests wait",
	"inferencePool.apiVersion":          "the chart's pool is of inference.networking.k8s.io/v1",
	"epp.latencyPredictor.":             "Weir predicts no latencies",
	"latencyPredictor.":                 "Weir predicts no latencies",
	"tokenizer.":                        "prompts are measured by their bytes (docs/tokens.md)",
	"tracing.":                          "docs/tracing.md",
	"monitoring.":                       "metrics (charts/weir/README.md)",
}

// values converts the values of a chart.
func (im *llmdImport) values(root *yaml.Node) {
	im.Values = map[string]any{}
	configs, chosen, provider := map[string]*yaml.Node{}, "", ""
	var walk func(path string, node *yaml.Node)
	walk = func(path string, node *yaml.Node) {
		im.pairs(path, node, func(_, path string, value *yaml.Node) {
			short := llmdPath(path)
			switch {
			case strings.HasSuffix(llmdValues[short], ".enabled") || strings.HasSuffix(llmdValues[short], ".create"):
				im.value(llmdValues[short], im.on(path, value))
			case llmdValues[short] != "":
				im.value(llmdValues[short], im.plain(path, value))
			case short == "epp.flags":
				im.flags(path, value)
			case short == "epp.pluginsConfigFile":
				chosen = im.text(path, value)
			case short == "epp.pluginsCustomConfig" || short == "epp.pluginsConfig":
				im.pairs(path, value, func(file, _ string, text *yaml.Node) { configs[file] = text })
			case short == "modelServers.targetPorts" || short == "inferencePool.targetPorts":
				im.ports(path, value)
			case short == "inferencePool.targetPortNumber":
				im.value("pool.targetPorts", []int64{im.whole(path, value, 1, 65535)})
			case short == "modelServers.protocol":
				im.protocol(path, value)
			case short == "monitoring.prometheus.auth.secretName": // of a service account's token
				im.value("metrics.auth.tokenSecret", map[string]any{"name": im.text(path, value), "key": "token"})
			case short == "proxy.enabled":
				if im.on(path, value) {
					im.value("envoy.mode", "sidecar")
				}
			case short == "provider.name":
				provider = im.text(path, value)
			case short == "sidecar":
				im.sidecar(path, value)
			case short == "tracing":
				im.tracing(path, value)
			case short == "httpRoute.inferenceGatewayName":
				im.value("httpRoute.parentRefs", []any{map[string]any{"name": im.text(path, value)}})
			case short == "proxy.mode":
				if mode := im.text(path, value); mode == "standalone" {
					im.value("envoy.mode", mode)
				}
			default:
				switch n := im.at(path, value); {
				case n == nil:
				case n.Kind == yaml.MappingNode || slices.Contains(llmdTops, path):
					walk(path, n)
				default:
					im.ignored = append(im.ignored, withoutIndices(short))
				}
			}
		})
	}
	walk("", root)
	if route, ok := im.Values["httpRoute"].(map[string]any); ok && route["enabled"] == true && route["parentRefs"] == nil {
		im.value("httpRoute.parentRefs", []any{map[string]any{"name": llmdGateway}})
		im.note("httpRoute.parentRefs: %s is the gateway that their charts name where the values name none", llmdGateway)
	}
	im.gateway(provider)
	ignored := slices.Compact(im.ignored)
	im.ignored = nil
	if text := configs[chosen]; text != nil {
		im.configText(chosen, im.text("pluginsCustomConfig", text))
	} else if chosen != "" {
		im.note("pluginsConfigFile %q is not in the values: its defaults are profile recommended's", chosen)
	}
	im.ignored = ignored
	im.Notes = append(im.Notes, im.instead(llmdValuesInstead)...)
}

// llmdPath returns a path in their values without what differs between llm-d's and GIE's charts.
func llmdPath(path string) string {
	path = strings.TrimPrefix(path, "router.")
	if rest, ok := strings.CutPrefix(path, "inferenceExtension."); ok {
		for _, top := range []string{"monitoring", "tracing", "sidecar", "provider", "extraServicePorts"} {
			if rest == top || strings.HasPrefix(rest, top+".") {
				return rest
			}
		}
		switch rest {
		case "failureMode":
			return "inferencePool." + rest
		case "trace":
			return "tracing"
		}
		return "epp." + rest
	}
	if rest, ok := strings.CutPrefix(path, "inferencePool.modelServers."); ok {
		return "modelServers." + rest
	}
	if rest, ok := strings.CutPrefix(path, "experimentalHttpRoute."); ok {
		return "httpRoute." + rest
	}
	switch path {
	case "inferencePool.modelServerType":
		return "modelServers.type"
	case "inferencePool.modelServerProtocol":
		return "modelServers.protocol"
	}
	return path
}

// gateway converts the name of a gateway. Beside an Envoy of its own Weir's chart has no objects of one.
func (im *llmdImport) gateway(provider string) {
	switch {
	case provider == "" || provider == "none":
	case im.Values["envoy"] == nil && (provider == "istio" || provider == "gke"):
		im.value("gateway.provider", provider)
	default:
		im.ignored = append(im.ignored, "provider.name")
	}
}

// sidecar converts a container beside their picker, which Weir's chart has if it is an Envoy.
func (im *llmdImport) sidecar(path string, node *yaml.Node) {
	enabled, envoy := false, false
	var others []string
	im.pairs(path, node, func(key, path string, value *yaml.Node) {
		switch key {
		case "enabled":
			enabled = im.on(path, value)
		case "name", "image":
			envoy = envoy || strings.Contains(fmt.Sprint(im.plain(path, value)), "envoy")
		default:
			others = append(others, key)
		}
	})
	switch {
	case enabled && envoy:
		im.value("envoy.mode", "sidecar")
		for _, key := range others {
			im.note("sidecar.%s: ignored: the chart has an Envoy of its own (envoy in charts/weir/README.md)", key)
		}
	case enabled:
		im.ignored = append(im.ignored, "sidecar")
	}
}

// tracing converts their tracing, whose sampler is parentbased_traceidratio unless another one is named. Without the URL of
// a collector Weir's chart has none.
func (im *llmdImport) tracing(path string, node *yaml.Node) {
	enabled, texts := false, map[string]string{}
	var others []string
	im.pairs(path, node, func(key, path string, value *yaml.Node) {
		switch key {
		case "enabled":
			enabled = im.on(path, value)
		case "otelExporterEndpoint":
			texts[key] = im.text(path, value)
		case "sampling":
			im.pairs(path, value, func(key, path string, value *yaml.Node) {
				if key != "sampler" && key != "samplerArg" {
					others = append(others, "tracing.sampling."+key)
					return
				}
				texts[key] = im.text(path, value)
			})
		default:
			others = append(others, "tracing."+key)
		}
	})
	if enabled {
		im.ignored = append(im.ignored, others...)
	}
	switch {
	case !enabled:
		return
	case texts["otelExporterEndpoint"] == "":
		im.note("tracing.enabled: left out, since tracing.endpoint must be the URL of a collector")
		return
	}
	im.value("tracing.enabled", true)
	im.value("tracing.endpoint", texts["otelExporterEndpoint"])
	if arg := texts["samplerArg"]; arg != "" {
		im.value("tracing.sampler", cmp.Or(texts["sampler"], "parentbased_traceidratio"))
		im.value("tracing.samplerArg", arg)
	} else if sampler := texts["sampler"]; sampler != "" {
		im.value("tracing.sampler", sampler)
	}
}

// configText converts a file of the values' plugins.
func (im *llmdImport) configText(file, text string) {
	root, problems := parseYAML([]byte(text))
	for _, p := range problems {
		p.Path = file
		im.problems = append(im.problems, p)
	}
	if root != nil {
		im.config(file, root)
	}
}

// value sets a value of Weir's chart.
func (im *llmdImport) value(path string, v any) {
	keys := strings.Split(path, ".")
	into := im.Values
	for _, key := range keys[:len(keys)-1] {
		below, ok := into[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			into[key] = below
		}
		into = below
	}
	into[keys[len(keys)-1]] = v
}

// plain returns the value of a node as it is.
func (im *llmdImport) plain(path string, node *yaml.Node) (v any) {
	if err := node.Decode(&v); err != nil {
		im.problems.add(path, describe(node), "%v", err)
	}
	return v
}

// on returns a boolean. A text is none: a template takes "false" as true.
func (im *llmdImport) on(path string, node *yaml.Node) bool {
	n := im.at(path, node)
	if n == nil {
		return false
	}
	var v any
	if n.Kind == yaml.ScalarNode {
		v = im.plain(path, n)
	}
	on, ok := v.(bool)
	if !ok {
		im.problems.add(path, cmp.Or(n.Value, describe(n)), "must be true or false, without quotes")
	}
	return on
}

// ports converts ports, which are numbers or objects with one.
func (im *llmdImport) ports(path string, node *yaml.Node) {
	ports := []int64{}
	im.items(path, node, func(path string, node *yaml.Node) {
		if n := im.at(path, node); n == nil || n.Kind != yaml.MappingNode {
			ports = append(ports, im.whole(path, node, 1, 65535))
			return
		}
		im.pairs(path, node, func(key, path string, value *yaml.Node) {
			if key == "number" {
				ports = append(ports, im.whole(path, value, 1, 65535))
			}
		})
	})
	im.value("pool.targetPorts", ports)
}

func (im *llmdImport) protocol(path string, node *yaml.Node) {
	switch text := im.text(path, node); text {
	case "http", "HTTP", "":
	case "h2c", "grpc", "GRPC":
		im.value("pool.appProtocol", "kubernetes.io/h2c")
	default:
		im.problems.add(path, text, "must be http, h2c or grpc")
	}
}

// llmdFlags are the flags of their picker that Weir's chart sets, with its values.
var llmdFlags = map[string]string{
	"ha-enable-leader-election": "leaderElection.enabled", "metrics-endpoint-auth": "metrics.auth.enabled", "secure-serving": "tls.enabled",
	"pool-name": "", "pool-namespace": "", "pool-group": "", "grpc-port": "", "grpc-health-port": "", "metrics-port": "", "config-file": "",
	"config-text": "", "cert-path": "", "drain-timeout": "", "endpoint-selector": "", "endpoint-target-ports": "", "metrics-secure-serving": "",
	"metrics-cert-dir": "", "metrics-cert-path": "", "zap-encoder": "", "tls-min-version": "", "client-ca-file": "", "kubeconfig": "",
	"endpoints": "", "endpoints-file": "", "validate": "",
}

// flags converts the flags of their picker: those with a value of the chart, and the others as they are, since epp knows them.
func (im *llmdImport) flags(path string, node *yaml.Node) {
	flags := im.given(path, node)
	var extra []any
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		of, known := llmdFlags[flag]
		switch value := flags[flag]; {
		case flag == "v":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				im.problems.add(join(path, flag), value, "must be a whole number of at least 0")
			}
			im.value("verbosity", n)
		case of != "":
			on, err := strconv.ParseBool(value)
			if err != nil {
				im.problems.add(join(path, flag), value, "must be true or false")
			}
			im.value(of, on)
		case known:
			im.note("flag --%s: ignored: the chart sets it (charts/weir/README.md)", flag)
		default:
			extra = append(extra, "--"+flag+"="+value)
		}
	}
	if len(extra) > 0 {
		im.value("extraArgs", extra)
	}
}

// llmdFlag is what the name of a flag is.
var llmdFlag = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// given returns the flags that values name: a mapping or, in older charts of GIE's, a list of names and values, of which the
// last one of a name counts.
func (im *llmdImport) given(path string, node *yaml.Node) map[string]string {
	flags := map[string]string{}
	n := im.at(path, node)
	if n == nil || n.Kind != yaml.SequenceNode {
		im.pairs(path, node, func(flag, of string, value *yaml.Node) {
			if im.isFlag(path, flag) {
				flags[flag] = im.text(of, value)
			}
		})
		return flags
	}
	im.items(path, n, func(path string, node *yaml.Node) {
		texts := map[string]string{}
		var others []string
		im.pairs(path, node, func(key, path string, value *yaml.Node) {
			if key != "name" && key != "value" {
				others = append(others, key)
				return
			}
			texts[key] = im.text(path, value)
		})
		flag := texts["name"]
		if !im.isFlag(join(path, "name"), flag) {
			return
		}
		if len(others) > 0 {
			im.note("flag --%s: its %s is ignored: only name and value count", flag, strings.Join(others, ", "))
		}
		if _, again := flags[flag]; again {
			im.note("flag --%s: is there more than once: the last value counts", flag)
		}
		flags[flag] = texts["value"]
	})
	return flags
}

// isFlag reports whether a text is the name of a flag; if not, that is a problem of its path.
func (im *llmdImport) isFlag(path, text string) bool {
	ok := llmdFlag.MatchString(text)
	if !ok {
		im.problems.add(path, text, "must be the name of a flag, of letters, digits, -, _ and .")
	}
	return ok
}
