{{/*
Envoy's configuration: files/envoy.yaml, which is config/envoy/recommended.yaml, or files/envoy-gate.yaml, which is
config/envoy/gate.yaml, with other addresses. It is written as JSON, because numbers that went through a template's YAML
come out as floats.
*/}}
{{- define "weir.envoyConfig" -}}
{{- $envoy := .Files.Get (ternary "files/envoy-gate.yaml" "files/envoy.yaml" (eq .Values.envoy.firstTokenGate true)) | fromYaml }}
{{- $clusters := list }}
{{- range $cluster := $envoy.static_resources.clusters }}
{{- if eq $cluster.name "model_servers" }}
{{- $_ := include "weir.envoyToModelServers" (dict "root" $ "cluster" $cluster) }}
{{- $clusters = append $clusters $cluster }}
{{- else if ne $cluster.name "weir" }}
{{- $clusters = append $clusters $cluster }}
{{- else if eq $.Values.envoy.mode "standalone" }}
{{- $leaderFirst := include "weir.envoyLeaderFirst" . | fromYaml }}
{{- $_ := set $leaderFirst "circuit_breakers" $cluster.circuit_breakers }}
{{- if $.Values.envoy.firstTokenGate }}
{{- /* The hash that chooses a replica is computed with the options of this cluster. */}}
{{- $_ := set $leaderFirst "typed_extension_protocol_options" $cluster.typed_extension_protocol_options }}
{{- end }}
{{- $clusters = append $clusters $leaderFirst }}
{{- range $name, $service := dict "weir_leader" "readiness" "weir_replicas" "synced" }}
{{- $replicas := mustDeepCopy $cluster }}
{{- $_ := include "weir.envoyToReplicas" (dict "root" $ "cluster" $replicas "name" $name "service" $service) }}
{{- $clusters = append $clusters $replicas }}
{{- end }}
{{- else }}
{{- $_ := include "weir.envoyToWeir" (dict "root" $ "cluster" $cluster "host" "127.0.0.1") }}
{{- $clusters = append $clusters $cluster }}
{{- end }}
{{- end }}
{{- $_ := set $envoy.static_resources "clusters" $clusters }}
{{- toPrettyJson $envoy }}
{{- end }}

{{/*
The cluster of Weir where there are replicas: the leader, and while none is ready, synced replicas, which queue and
bound requests too. Only if no replica answers do requests go past Weir.
*/}}
{{- define "weir.envoyLeaderFirst" -}}
name: weir
connect_timeout: 1s
lb_policy: CLUSTER_PROVIDED
cluster_type:
  name: envoy.clusters.aggregate
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
    clusters: [weir_leader, weir_replicas]
{{- end }}

{{/* All replicas; those get requests whose health service is serving: "readiness" only the leader's, "synced" all. */}}
{{- define "weir.envoyToReplicas" -}}
{{- $_ := set .cluster "name" .name }}
{{- include "weir.envoyDNS" .cluster }}
{{- $_ := include "weir.envoyToWeir" (dict "root" .root "cluster" .cluster "host" (printf "%s-replicas" (include "weir.fullname" .root))) }}
{{- $_ := set .cluster.load_assignment "cluster_name" .name }}
{{- /* One healthy replica of a thousand is enough to use these alone; with none Envoy picks no other at random. */}}
{{- $_ := set .cluster.load_assignment "policy" (dict "overprovisioning_factor" 100000) }}
{{- $_ := set .cluster "common_lb_config" (dict "healthy_panic_threshold" (dict "value" 0)) }}
{{- $_ := set .cluster "health_checks" (list (dict
    "grpc_health_check" (dict "service_name" .service)
    "interval" "1s" "no_traffic_interval" "1s" "timeout" "1s" "healthy_threshold" 1 "unhealthy_threshold" 1)) }}
{{- end }}

{{/* A cluster of Weir, by a name that pods of this namespace can look up. */}}
{{- define "weir.envoyToWeir" -}}
{{- if .root.Values.tls.enabled }}
{{- $_ := set .cluster "transport_socket" (dict "name" "envoy.transport_sockets.tls" "typed_config" (dict
    "@type" "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    "common_tls_context" (dict "alpn_protocols" (list "h2")))) }}
{{- end }}
{{- $_ := set .cluster.load_assignment "endpoints" (list (include "weir.envoyEndpoints" (dict "host" .host "ports" (list 9002)) | fromYaml)) }}
{{- end }}

{{/* The cluster of the model servers: all that DNS has, of which Weir picks one. */}}
{{- define "weir.envoyToModelServers" -}}
{{- include "weir.envoyDNS" .cluster }}
{{- $_ := unset .cluster "eds_cluster_config" }}
{{- $host := printf "%s-model-servers" (include "weir.fullname" .root) }}
{{- $_ := set .cluster "load_assignment" (dict "cluster_name" "model_servers" "endpoints" (list (include "weir.envoyEndpoints" (dict "host" $host "ports" .root.Values.pool.targetPorts) | fromYaml))) }}
{{- if eq .root.Values.pool.appProtocol "kubernetes.io/h2c" }}
{{- $options := index .cluster.typed_extension_protocol_options "envoy.extensions.upstreams.http.v3.HttpProtocolOptions" }}
{{- $_ := set $options "explicit_http_config" (dict "http2_protocol_options" (dict)) }}
{{- end }}
{{- end }}

{{- define "weir.envoyDNS" -}}
{{- $_ := set . "type" "STRICT_DNS" }}
{{- $_ := set . "dns_lookup_family" "ALL" }}
{{- $_ := set . "dns_refresh_rate" "1s" }}
{{- end }}

{{- define "weir.envoyEndpoints" -}}
lb_endpoints:
{{- range .ports }}
- endpoint: { address: { socket_address: { address: {{ $.host }}, port_value: {{ . }} } } }
{{- end }}
{{- end }}

{{/* Envoy's container, in Weir's pods or its own. */}}
{{- define "weir.envoyContainer" }}
name: envoy
image: {{ include "weir.image" (dict "image" .Values.envoy.image "tag" "") }}
imagePullPolicy: {{ .Values.envoy.image.pullPolicy }}
args: [--config-path, /etc/envoy/envoy.json, --disable-hot-restart]
ports:
  - { name: http, containerPort: 8080 }
  - { name: envoy-stats, containerPort: 9902 }
startupProbe:
  tcpSocket: { port: http }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  tcpSocket: { port: http }
  periodSeconds: 10
readinessProbe:
  tcpSocket: { port: http }
  periodSeconds: 5
resources:
  {{- toYaml .Values.envoy.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - { name: envoy, mountPath: /etc/envoy, readOnly: true }
{{- end }}
