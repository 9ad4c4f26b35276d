{{/* Checks beyond the schema: values that contradict each other. Each message begins with the key. */}}
{{- define "weir.checks" -}}
{{- $v := .Values }}
{{- $pool := eq $v.pool.source "InferencePool" }}
{{- if and (not $v.pool.matchLabels) (or (not $pool) $v.pool.create) }}
{{- fail "pool.matchLabels: must have a label of the model servers' pods, or pool.create must be false and pool.name an InferencePool that exists" }}
{{- end }}
{{- if and $pool (not $v.pool.create) (not $v.pool.name) }}
{{- fail "pool.name: must be the InferencePool that exists, since pool.create is false" }}
{{- end }}
{{- if and (not $pool) $v.objectives }}
{{- fail "objectives: need an InferencePool, but pool.source is Selector" }}
{{- end }}
{{- include "weir.gatewayChecks" . }}
{{- if and (not $pool) $v.httpRoute.enabled (not (include "weir.routesToService" .)) }}
{{- fail "httpRoute.enabled: a route leads to an InferencePool, but pool.source is Selector" }}
{{- end }}
{{- if and $v.httpRoute.enabled (not $v.httpRoute.parentRefs) }}
{{- fail "httpRoute.parentRefs: must name a Gateway" }}
{{- end }}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) }}
{{- fail "serviceAccount.name: must be the service account that exists, since serviceAccount.create is false" }}
{{- end }}
{{- if and $v.tls.certManager.enabled (not $v.tls.enabled) }}
{{- fail "tls.certManager.enabled: has no use, since tls.enabled is false" }}
{{- end }}
{{- if and $v.tls.certManager.enabled (not $v.tls.certManager.issuerRef.name) }}
{{- fail "tls.certManager.issuerRef.name: must be the issuer" }}
{{- end }}
{{- if and $v.tls.clientCAConfigMap (not $v.tls.enabled) }}
{{- fail "tls.clientCAConfigMap: has no use, since tls.enabled is false" }}
{{- end }}
{{- if and $v.tls.clientCAConfigMap (ne $v.envoy.mode "none") }}
{{- fail "tls.clientCAConfigMap: the Envoy of this chart has no client certificate; envoy.mode must be none" }}
{{- end }}
{{- if and $v.tls.clientCAConfigMap (has $v.gateway.provider (list "envoy-gateway" "istio")) }}
{{- fail (printf "tls.clientCAConfigMap: the gateway has no client certificate; gateway.provider must not be %s" $v.gateway.provider) }}
{{- end }}
{{- if and $v.metrics.scrapeAnnotations $v.metrics.auth.enabled }}
{{- fail "metrics.scrapeAnnotations: scrapers that follow them send no token, so metrics.auth.enabled must be false" }}
{{- end }}
{{- if and $v.metrics.podMonitor.enabled $v.metrics.auth.enabled (not $v.metrics.auth.tokenSecret) }}
{{- fail "metrics.auth.tokenSecret: must be given, since a PodMonitor cannot use the token of Prometheus' own pod" }}
{{- end }}
{{- if and $v.metrics.podMonitor.enabled $v.metrics.serviceMonitor.enabled }}
{{- fail "metrics.podMonitor.enabled: metrics.serviceMonitor.enabled is true already, and every replica would be scraped twice" }}
{{- end }}
{{- if and $v.tracing.enabled (not $v.tracing.endpoint) }}
{{- fail "tracing.endpoint: must be the URL of the collector, since tracing.enabled is true" }}
{{- end }}
{{- if and $v.tracing.samplerArg (not (hasSuffix "traceidratio" $v.tracing.sampler)) }}
{{- fail (printf "tracing.samplerArg: %s: has no use, since tracing.sampler is %s" $v.tracing.samplerArg $v.tracing.sampler) }}
{{- end }}
{{- if and $v.autoscaling.enabled (not $v.autoscaling.target.name) }}
{{- fail "autoscaling.target.name: must be the Deployment of the model servers" }}
{{- end }}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas: %v: must be at most autoscaling.maxReplicas, %v" $v.autoscaling.minReplicas $v.autoscaling.maxReplicas) }}
{{- end }}
{{- if and (ne $v.envoy.mode "none") (not $v.pool.matchLabels) }}
{{- fail "pool.matchLabels: must have a label of the model servers' pods, by which the Envoy of this chart finds them" }}
{{- end }}
{{- if and $v.envoy.podMonitor.enabled (eq $v.envoy.mode "none") }}
{{- fail "envoy.podMonitor.enabled: has no use, since envoy.mode is none" }}
{{- end }}
{{- $labels := set (include "weir.labels" (dict "root" $ "component" "epp") | fromYaml) "weir.dev/leader" "" }}
{{- range $key, $_ := $v.podLabels }}
{{- if hasKey $labels $key }}
{{- fail (printf "podLabels: %s: is a label that Weir's pods have already, and by which its objects find them" $key) }}
{{- end }}
{{- end }}
{{- if $v.leaderElection.enabled }}
{{- $lease := include "weir.milliseconds" $v.leaderElection.leaseDuration | int }}
{{- $retry := include "weir.milliseconds" $v.leaderElection.retryPeriod | int }}
{{- if gt (mul 2 $retry) $lease }}
{{- fail (printf "leaderElection.retryPeriod: %s: must be at most half of leaderElection.leaseDuration, %s" $v.leaderElection.retryPeriod $v.leaderElection.leaseDuration) }}
{{- end }}
{{- end }}
{{- $own := list "--pool-name" "--pool-namespace" "--endpoint-selector" "--endpoint-target-ports" "--endpoints" "--endpoints-file" "--config-text" "--kubeconfig" "--cert-path" "--client-ca-file" "--metrics-cert-path" "--validate" }}
{{- range (include "weir.args" . | fromYamlArray) }}
{{- $own = append $own (first (splitList "=" .)) }}
{{- end }}
{{- $names := list "NAMESPACE" "POD_NAME" "POD_UID" "POD_IP" }}
{{- range $v.extraEnv }}
{{- if has .name $names }}
{{- fail (printf "extraEnv: %s: is set already" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- range $v.extraArgs }}
{{- if has (first (splitList "=" .)) $own }}
{{- fail (printf "extraArgs: %s: is set already, or set by a value of its own" .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* A duration of one number and one unit, which the schema allows, in milliseconds. */}}
{{- define "weir.milliseconds" -}}
{{- if hasSuffix "ms" . -}}
{{ trimSuffix "ms" . }}
{{- else if hasSuffix "m" . -}}
{{ mul (trimSuffix "m" . | int) 60000 }}
{{- else -}}
{{ mul (trimSuffix "s" . | int) 1000 }}
{{- end -}}
{{- end }}
