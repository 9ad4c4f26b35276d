{{/* Names and labels that several objects share. */}}

{{- define "weir.name" -}}
{{ .Values.nameOverride | default "weir" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
The name of all objects: a label of at most 49 characters, so that suffixes fit. One that had to be changed for that has
the hash of the whole, so that two releases never share their objects.
*/}}
{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else -}}
{{- $whole := ternary .Release.Name (printf "%s-weir" .Release.Name) (contains "weir" .Release.Name) -}}
{{- $name := $whole | replace "." "-" -}}
{{- if or (ne $name $whole) (gt (len $name) 49) -}}
{{ printf "%s-%s" ($name | trunc 40 | trimSuffix "-") ($whole | sha256sum | trunc 8) }}
{{- else -}}
{{ $name }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "weir.poolName" -}}
{{ .Values.pool.name | default .Release.Name }}
{{- end }}

{{- define "weir.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "weir.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* Labels that select pods. Call with (dict "root" $ "component" "epp"). */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: {{ include "weir.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels of every object. Call as weir.selector. */}}
{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* metadata of an object of Weir's; call with (dict "root" $ "name" …), "component" is epp unless given. */}}
{{- define "weir.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "weir.labels" (dict "root" .root "component" (.component | default "epp")) | nindent 2 }}
{{- end }}

{{/*
The prefix of names of objects without a namespace. A namespace has no dot, so no other release has this one.
*/}}
{{- define "weir.clusterName" -}}
{{ printf "%s.%s" .Release.Namespace (include "weir.fullname" .) }}
{{- end }}

{{/* An image's reference; call with (dict "image" … "tag" …). */}}
{{- define "weir.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .tag }}
{{- end -}}
{{- end }}

{{/* The Secret with the certificate; empty: Weir makes one itself. */}}
{{- define "weir.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "weir.fullname" .)) }}
{{- else -}}
{{ .Values.tls.secretName }}
{{- end -}}
{{- end }}

{{/* The names under which gateways reach Weir, which its certificate has, as a YAML list. */}}
{{- define "weir.dnsNames" -}}
{{- range $service := list (include "weir.fullname" .) (printf "%s-replicas" (include "weir.fullname" .)) }}
- {{ printf "%s.%s" $service $.Release.Namespace }}
- {{ printf "%s.%s.svc" $service $.Release.Namespace }}
- {{ printf "%s.%s.svc.cluster.local" $service $.Release.Namespace }}
{{- end }}
{{- end }}
