{{/* The arguments of epp, as a YAML list. The pool is in the namespace of the pods, which $NAMESPACE says. */}}
{{- define "weir.args" -}}
{{- if eq .Values.pool.source "InferencePool" }}
- --pool-name={{ include "weir.poolName" . }}
- --pool-group={{ .Values.pool.group }}
{{- else }}
- --endpoint-selector={{ include "weir.matchLabels" . }}
- --endpoint-target-ports={{ .Values.pool.targetPorts | join "," }}
{{- end }}
- --config-file=/etc/weir/weir.yaml
- --grpc-port=9002
- --grpc-health-port=9003
- --metrics-port=9090
- --drain-timeout={{ .Values.drainSeconds }}s
- --takeover-window={{ .Values.takeoverWindow }}
{{- if .Values.leaderElection.enabled }}
- --ha-enable-leader-election
- --leader-endpoint-slice={{ include "weir.fullname" . }}
- --leader-election-lease-duration={{ .Values.leaderElection.leaseDuration }}
- --leader-election-retry-period={{ .Values.leaderElection.retryPeriod }}
{{- end }}
- --secure-serving={{ .Values.tls.enabled }}
{{- if .Values.tls.enabled }}
- --tls-min-version={{ .Values.tls.minVersion }}
{{- if include "weir.tlsSecret" . }}
- --cert-path=/etc/weir-tls
{{- end }}
{{- if .Values.tls.clientCAConfigMap }}
- --client-ca-file=/etc/weir-client-ca/ca.crt
{{- end }}
{{- end }}
- --metrics-endpoint-auth={{ .Values.metrics.auth.enabled }}
{{- if .Values.metrics.tls.enabled }}
- --metrics-secure-serving
{{- if .Values.metrics.tls.secretName }}
- --metrics-cert-path=/etc/weir-metrics-tls
{{- end }}
{{- end }}
{{- if .Values.metrics.aliases }}
- --metric-aliases
{{- end }}
{{- if .Values.tracing.enabled }}
- --tracing
{{- end }}
- --zap-encoder=json
- --v={{ .Values.verbosity }}
{{- end }}

{{/* The environment of tracing without the names that extraEnv has, as a YAML list. */}}
{{- define "weir.tracingEnv" -}}
{{- $env := list }}
{{- $given := list }}
{{- range .Values.extraEnv }}
{{- $given = append $given .name }}
{{- end }}
{{- range ternary (include "weir.tracingVariables" . | fromYamlArray) list .Values.tracing.enabled }}
{{- if not (has .name $given) }}
{{- $env = append $env . }}
{{- end }}
{{- end }}
{{- toYaml $env }}
{{- end }}

{{/* The variables of tracing, as a YAML list. */}}
{{- define "weir.tracingVariables" -}}
- { name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .Values.tracing.endpoint | quote }} }
- { name: OTEL_EXPORTER_OTLP_PROTOCOL, value: {{ .Values.tracing.protocol | quote }} }
- { name: OTEL_TRACES_SAMPLER, value: {{ .Values.tracing.sampler | quote }} }
{{- with .Values.tracing.samplerArg }}
- { name: OTEL_TRACES_SAMPLER_ARG, value: {{ . | quote }} }
{{- end }}
- { name: OTEL_SERVICE_NAME, value: {{ include "weir.fullname" . | quote }} }
- { name: OTEL_RESOURCE_ATTRIBUTES, value: "k8s.namespace.name=$(NAMESPACE),k8s.pod.name=$(POD_NAME)" }
{{- end }}

{{/* The labels of the model servers, as a selector. */}}
{{- define "weir.matchLabels" -}}
{{- $all := list }}
{{- range $key, $value := .Values.pool.matchLabels }}
{{- $all = append $all (printf "%s=%s" $key $value) }}
{{- end }}
{{- join "," $all }}
{{- end }}
