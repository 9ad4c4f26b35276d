{{/* What the two charts have in common, by other names: as YAML. */}}
{{- define "picker.facts" -}}
{{- if .Values.router }}
epp: {{ .Values.router.epp | default dict | toJson }}
modelServers: {{ .Values.router.modelServers | toJson }}
targetPorts: {{ .Values.router.modelServers.targetPorts | default (list (dict "number" 8000)) | toJson }}
route: {{ dict "on" .Values.httpRoute.create "gateway" .Values.httpRoute.inferenceGatewayName | toJson }}
selector: { llm-d-router-gateway: {{ .Release.Name }}-epp }
mode: { llm-d.ai/igw-mode: llm-d-router-gateway }
failureMode: FailOpen
appProtocol: http
group: llm-d.ai/v1alpha1
extProc: kubernetes.io/h2c
{{- else }}
epp: {{ .Values.inferenceExtension | toJson }}
modelServers: {{ .Values.inferencePool.modelServers | toJson }}
targetPorts: {{ .Values.inferencePool.targetPorts | default (list (dict "number" (.Values.inferencePool.targetPortNumber | default 8000))) | toJson }}
route: {{ dict "on" .Values.experimentalHttpRoute.enabled "gateway" .Values.experimentalHttpRoute.inferenceGatewayName | toJson }}
selector: { inferencepool: {{ .Release.Name }}-epp }
mode: {}
failureMode: {{ .Values.inferenceExtension.failureMode | default "FailClose" }}
group: inference.networking.x-k8s.io/v1alpha1
{{- end }}
{{- end }}

{{- define "picker.meta" -}}
namespace: {{ .Release.Namespace }}
labels: { app.kubernetes.io/name: {{ .Release.Name }}-epp, app.kubernetes.io/version: "0.0.0" }
{{- end }}
