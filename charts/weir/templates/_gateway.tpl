{{/* Parts of the objects of gateways (gateway.provider, docs/gateways.md). */}}

{{/* Not empty if the HTTPRoute leads to the model servers' Service: Envoy Gateway alone knows no InferencePools. */}}
{{- define "weir.routesToService" -}}
{{- if eq .Values.gateway.provider "envoy-gateway" -}}
true
{{- end }}
{{- end }}

{{/* The configuration that a gateway needs. Values of `config` go before it. */}}
{{- define "weir.gatewayConfig" -}}
{{- if eq .Values.gateway.provider "gke" -}}
# Its load balancers do not name their body modes.
assumeFullDuplex: true
{{- end }}
{{- end }}

{{/* The headers that clients must not send: those that config/envoy/recommended.yaml removes. */}}
{{- define "weir.clientHeaders" -}}
{{- $envoy := .Files.Get "files/envoy.yaml" | fromYaml }}
{{- range (first (first (first $envoy.static_resources.listeners).filter_chains).filters).typed_config.http_filters }}
{{- if eq .name "envoy.filters.http.header_mutation" }}
{{- range .typed_config.mutations.request_mutations }}
- {{ .remove }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Gateways of the route, each once: parentRefs may name several listeners of one. A YAML list of names and namespaces. */}}
{{- define "weir.gateways" -}}
{{- $seen := dict }}
{{- range .Values.httpRoute.parentRefs }}
{{- $gateway := dict "name" .name "namespace" (.namespace | default $.Release.Namespace) }}
{{- $_ := set $seen (toJson $gateway) $gateway }}
{{- end }}
{{- range $seen }}
- {{ toJson . }}
{{- end }}
{{- end }}

{{/* metadata of a policy for a Gateway, which has to be in its namespace; call with (dict "root" $ "gateway" one "many" bool). */}}
{{- define "weir.clientPolicyMetadata" -}}
{{- $own := eq .gateway.namespace .root.Release.Namespace }}
name: {{ ternary (include "weir.fullname" .root) (include "weir.clusterName" .root) $own }}{{ if .many }}-{{ .gateway.name }}{{ end }}
namespace: {{ .gateway.namespace | quote }}
labels:
  {{- include "weir.labels" (dict "root" .root "component" "gateway") | nindent 2 }}
{{- end }}

{{/* targetRefs of a policy for the HTTPRoute. */}}
{{- define "weir.toRoute" -}}
- { group: gateway.networking.k8s.io, kind: HTTPRoute, name: {{ include "weir.fullname" . }} }
{{- end }}

{{/* Envoy Gateway's circuit breakers: each waiting or running request counts, and its default is 1,024. */}}
{{- define "weir.noCircuitBreaker" -}}
maxConnections: 1000000
maxPendingRequests: 1000000
maxParallelRequests: 1000000
{{- end }}

{{/* A Go duration, such as 1m30s, in milliseconds. */}}
{{- define "weir.longDuration" -}}
{{- $ms := 0.0 }}
{{- range regexFindAll "[0-9.]+(h|ms|m|s)" (toString .) -1 }}
{{- $unit := regexFind "[hms]+$" . }}
{{- $ms = addf $ms (mulf (float64 (trimSuffix $unit .)) (index (dict "h" 3600000.0 "m" 60000.0 "s" 1000.0 "ms" 1.0) $unit)) }}
{{- end }}
{{- int64 $ms }}
{{- end }}

{{/* The tiers of a profile that has any, with what the checks below need (TestProfilesBehindGateways). */}}
{{- define "weir.tiersOfProfiles" -}}
smg-priority:
  system: { canPreempt: true, queueTimeout: 30s }
  interactive: { canPreempt: true, queueTimeout: 30s }
  default: { queueTimeout: 1m }
  bulk: { queueTimeout: 5m }
{{- end }}

{{/* The last value of the argument "name" among "args"; empty without it. The schema has each argument in one element. */}}
{{- define "weir.argument" -}}
{{- $name := .name }}
{{- $value := "" }}
{{- range .args }}
{{- if hasPrefix (print $name "=") . }}
{{- $value = trimPrefix (print $name "=") . }}
{{- end }}
{{- end }}
{{- $value }}
{{- end }}

{{/* The tiers of `config` over those of its profile, by name. With replaceTiers only tiers in the list are left. */}}
{{- define "weir.tiers" -}}
{{- $profile := index (include "weir.tiersOfProfiles" . | fromYaml) (include "weir.argument" (dict "args" .Values.extraArgs "name" "--profile") | default .Values.config.profile | default "" | toString) | default dict }}
{{- $tiers := eq (toString .Values.config.replaceTiers) "true" | ternary dict $profile }}
{{- range .Values.config.tiers | default list }}
{{- $tiers = set $tiers (toString .name) (mergeOverwrite (dict) (index $profile (toString .name) | default dict) .) }}
{{- end }}
{{- toYaml $tiers }}
{{- end }}

{{/* The longest time that a request may wait, in milliseconds: a tier's queueTimeout, or the queue's TTL, 30 s by default. */}}
{{- define "weir.longestWait" -}}
{{- $queue := .Values.config.fairRequestQueue | default .Values.config.fair_request_queue | default dict }}
{{- $ttl := $queue.queueTTL | default $queue.queue_ttl | default "30s" }}
{{- $ttl = include "weir.argument" (dict "args" .Values.extraArgs "name" "--queue-ttl") | default $ttl }}
{{- $longest := include "weir.longDuration" $ttl | int64 }}
{{- range include "weir.tiers" . | fromYaml }}
{{- if .queueTimeout }}
{{- $longest = max $longest (include "weir.longDuration" .queueTimeout | int64) }}
{{- end }}
{{- end }}
{{- $longest }}
{{- end }}

{{/* Checks of the values of gateways; each message begins with the key. */}}
{{- define "weir.gatewayChecks" -}}
{{- $v := .Values }}
{{- $config := $v.config | default dict }}
{{- if and $v.gateway.provider (ne $v.envoy.mode "none") }}
{{- fail (printf "gateway.provider: %s: has no use beside the chart's own Envoy; envoy.mode must be none" $v.gateway.provider) }}
{{- end }}
{{- if and (has $v.gateway.provider (list "envoy-gateway" "envoy-ai-gateway" "kgateway")) (not $v.httpRoute.enabled) }}
{{- fail (printf "httpRoute.enabled: must be true, since gateway.provider is %s" $v.gateway.provider) }}
{{- end }}
{{- if and (eq $v.gateway.provider "gke") (ne $v.pool.source "InferencePool") }}
{{- fail "gateway.provider: gke: its policies attach to an InferencePool, but pool.source is Selector" }}
{{- end }}
{{- if eq $v.gateway.provider "envoy-gateway" }}
{{- if not $v.pool.matchLabels }}
{{- fail "pool.matchLabels: must have a label of the model servers' pods, by which Envoy Gateway finds them" }}
{{- end }}
{{- if le (include "weir.longDuration" $v.gateway.envoyGateway.messageTimeout | int64) (include "weir.longestWait" . | int64) }}
{{- fail (printf "gateway.envoyGateway.messageTimeout: %s: must be above every queueTTL and queueTimeout, of which the longest is %d s" $v.gateway.envoyGateway.messageTimeout (div (include "weir.longestWait" . | int64) 1000)) }}
{{- end }}
{{- if and (eq $v.gateway.envoyGateway.responseBody "FullDuplexStreamed") (eq $v.pool.failureMode "FailOpen") }}
{{- fail "gateway.envoyGateway.responseBody: FullDuplexStreamed: needs pool.failureMode FailClose" }}
{{- end }}
{{- end }}
{{- if eq $v.gateway.provider "agentgateway" }}
{{- range $name, $tier := include "weir.tiers" . | fromYaml }}
{{- if $tier.canPreempt }}
{{- fail (printf "config.tiers: %s: canPreempt must be false, since with agentgateway a preempted request goes on at its engine" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (has $v.gateway.provider (list "agentgateway" "envoy-ai-gateway")) (($config.scheduling | default dict).fallbacks) }}
{{- fail (printf "config.scheduling.fallbacks: must be 0, since %s takes one address" $v.gateway.provider) }}
{{- end }}
{{- if and (eq $v.autoscaling.kind "ScaledObject") $v.autoscaling.enabled (not $v.autoscaling.prometheusAddress) }}
{{- fail "autoscaling.prometheusAddress: must be the URL of Prometheus, since autoscaling.kind is ScaledObject" }}
{{- end }}
{{- end }}
